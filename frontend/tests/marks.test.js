import assert from "node:assert/strict";
import test from "node:test";
import { happenings, marksOf } from "../vramscope_frontend/js/marks.js";

/** @type {any} */
const command = { id: "c1", name: "empty_cache", dry_run: false, ranks: [0], state: "done", issued_by: "ada", created_ns: 5e9, finished_ns: 6e9, receipts: { 0: { state: "done", step: 42, returned_bytes: 3 * 2 ** 30, took_s: 0.018, time_ns: 6e9 } } };
/** @returns {any} */
const event = (changes = {}) => ({ time_ns: 1e9, rank: 0, step: 1, kind: "attach", text: "Attached", data: {}, ...changes });

test("a command and the event about it are one line", () => {
  const all = happenings([event(), event({ kind: "command", data: { id: "c1" }, time_ns: 6e9 })], [command], 1);
  assert.deepEqual(all.map((one) => one.text), ["Attached", "Free the cache: 3.0 GiB returned, 18 ms, by ada"]);
});

test("dry runs and questions leave no mark", () => {
  assert.deepEqual(happenings([], [{ ...command, dry_run: true }, { ...command, name: "stats" }], 1), []);
});

test("a snapshot that was taken is a diamond", () => {
  const taken = { ...command, name: "snapshot", receipts: { 0: { state: "done", step: 42, result: { snapshot: "s1" }, time_ns: 6e9 } } };
  assert.deepEqual(happenings([], [taken], 1).map((one) => [one.kind, one.glyph, one.text]), [["snapshot", "◆", "Take a snapshot, by ada"]]);
});

test("several ranks are told apart", () => {
  assert.equal(happenings([event({ rank: 3 })], [], 8)[0].text, "Rank 3: Attached");
});

test("marks stand at their step, or at the step of their time", () => {
  const all = happenings([event(), event({ step: null, time_ns: 3e9 })], [], 1);
  assert.deepEqual(marksOf(all, "step", 0, (t) => t * 10).map((mark) => mark.x), [1, 30]);
  assert.deepEqual(marksOf(all, "time", 0, () => 0).map((mark) => mark.x), [1, 3]);
});

test("the agent's own notes are no events for a reader, unless something is missing", () => {
  const event = (/** @type {string} */ kind, /** @type {any} */ data = {}) => ({ time_ns: 5, rank: 0, step: 1, kind, text: kind, data });
  assert.deepEqual(happenings([event("processes"), event("outside"), event("tensors", { is_complete: true })], [], 1), []);
  assert.equal(happenings([event("tensors", { is_complete: false })], [], 1).length, 1);
});
