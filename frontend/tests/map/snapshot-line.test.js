import assert from "node:assert/strict";
import test from "node:test";
import { marksOf } from "../../vramscope_frontend/js/map/snapshot-line.js";

const snapshot = (/** @type {any} */ more) => /** @type {any} */ ({ id: "s", rank: 0, state: "complete", taken_ns: 0, step: 3, ...more });

test("snapshots lie on the line by when they were taken, oldest first", () => {
  const marks = marksOf([snapshot({ id: "b", taken_ns: 75e9 }), snapshot({ id: "a", taken_ns: 25e9, step: null })], 0, 0, 100e9);
  assert.deepEqual(marks.map(({ id, at }) => [id, at]), [["a", 0.25], ["b", 0.75]]);
  assert.match(marks[1].title, /^Snapshot at step 3, /);
  assert.match(marks[0].title, /^Snapshot, /);
});

test("those of another rank and those that are not complete are left out", () => {
  const others = [snapshot({ rank: 1 }), snapshot({ state: "receiving" }), snapshot({ state: "failed" }), snapshot({ id: "of all", rank: null })];
  assert.deepEqual(marksOf(others, 0, 0, 1e9).map(({ id }) => id), ["of all"]);
});

test("what would lie on top of one another is moved apart, within the line", () => {
  const marks = marksOf(Array.from({ length: 3 }, (_, i) => snapshot({ id: String(i), taken_ns: 50e9 + i })), 0, 0, 100e9);
  assert.ok(marks[1].at - marks[0].at >= 0.0199 && marks[2].at - marks[1].at >= 0.0199);
  assert.equal(marksOf([snapshot({ taken_ns: -5e9 }), snapshot({ taken_ns: 500e9 })], 0, 0, 100e9).at(-1)?.at, 1);
});
