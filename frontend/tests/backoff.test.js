import assert from "node:assert/strict";
import test from "node:test";
import { isPermanent, reconnectDelay } from "../vramscope_frontend/js/backoff.js";

test("delays double up to a ceiling and are never nearly nothing", () => {
  assert.equal(reconnectDelay(1, 0), 0.25);
  assert.equal(reconnectDelay(1, 1), 0.5);
  assert.equal(reconnectDelay(4, 1), 4);
  assert.equal(reconnectDelay(40, 1), 15);
  assert.equal(reconnectDelay(40, 0), 7.5);
});

test("only refusals that would be repeated end the retries", () => {
  assert.deepEqual([4401, 4403, 4430].map(isPermanent), [true, true, true]);
  assert.deepEqual([1006, 4429, 4503].map(isPermanent), [false, false, false]);
});
