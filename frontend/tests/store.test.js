import assert from "node:assert/strict";
import test from "node:test";
import { Store } from "../vramscope_frontend/js/store.js";

test("listeners hear of changes, of what changed, and of nothing else", () => {
  const store = new Store({ a: 1, b: 2 });
  /** @type {string[][]} */
  const heard = [];
  const end = store.subscribe((_, changed) => heard.push(changed));
  store.set({ a: 1 });
  store.set({ a: 3, b: 2 });
  end();
  store.set({ b: 9 });
  assert.deepEqual(heard, [["a"]]);
});
