import assert from "node:assert/strict";
import test from "node:test";
import { coveringSnapshot } from "../../vramscope_frontend/js/snapshots/covering.js";

/** @returns {any} */
const info = (/** @type {string} */ id, /** @type {number[]} */ steps, changes = {}) => ({ id, state: "complete", rank: 0, steps: steps.map((step) => [step, step * 1e6]), ...changes });
/** @type {import("../../vramscope_frontend/js/snapshots/covering.js").Shown} */
const shown = { rank: 0, range: [10, 20], xKind: "step", started_ns: 0, numberAt: (x) => x };

test("the recording with most steps in the range is offered, from its first step there", () => {
  const all = [info("new", [20, 21, 22]), info("old", [8, 11, 12]), info("none", [])];
  const best = coveringSnapshot(all, shown);
  assert.deepEqual([best?.id, best?.step, best?.last], ["old", 11, 12]);
  assert.equal(coveringSnapshot(all, { ...shown, range: [100, 200] }), null);
});

test("of several alike the newest", () => {
  assert.equal(coveringSnapshot([info("new", [12]), info("old", [13])], shown)?.id, "new");
});

test("what is of another rank, or not here yet, is not offered", () => {
  assert.equal(coveringSnapshot([info("a", [12], { rank: 3 }), info("b", [12], { state: "receiving" })], shown), null);
  assert.equal(coveringSnapshot([info("a", [12], { rank: 3 })], { ...shown, rank: null })?.id, "a");
});

test("by time, and by the numbers of the axis", () => {
  assert.equal(coveringSnapshot([info("a", [12])], { ...shown, xKind: "time", range: [11.5, 12.5] })?.step, 12);
  assert.equal(coveringSnapshot([info("a", [12])], { ...shown, xKind: "time", range: [12.5, 13] }), null);
  assert.equal(coveringSnapshot([info("a", [12])], { ...shown, range: [110, 120], numberAt: (x) => x - 100 })?.id, "a");
});

test("a range within a recording is opened there, to the microsecond", () => {
  const all = [info("a", [12, 13, 14])];
  assert.deepEqual(coveringSnapshot(all, { ...shown, range: [12, 13] }), { id: "a", step: 12, last: 13, isWhole: true, range_us: [12e6, 13e6] });
  // The first step began where the one before it ended.
  assert.deepEqual(coveringSnapshot(all, { ...shown, range: [11, 12.5] })?.range_us, [11e6, 12.5e6]);
  assert.deepEqual(coveringSnapshot(all, { ...shown, xKind: "time", range: [12.25, 13.75] }), { id: "a", step: 13, last: 13, isWhole: true, range_us: [12_250_000, 13_750_000] });
});

test("of a range that goes beyond a recording the recorded part is told", () => {
  const all = [info("a", [12, 13, 14])];
  assert.deepEqual(coveringSnapshot(all, { ...shown, range: [13, 40] }), { id: "a", step: 13, last: 14, isWhole: false, range_us: [13e6, 14e6] });
  assert.deepEqual(coveringSnapshot(all, { ...shown, range: [2, 12] }), { id: "a", step: 12, last: 12, isWhole: false, range_us: [11e6, 12e6] });
  assert.equal(coveringSnapshot(all, { ...shown, xKind: "time", range: [13.5, 14.5] })?.isWhole, false);
});
