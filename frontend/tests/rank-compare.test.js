import assert from "node:assert/strict";
import test from "node:test";
import { compose } from "../vramscope_frontend/js/composition.js";
import { compareRows, isLarge, median, mostAbove } from "../vramscope_frontend/js/rank-compare.js";

const GIB = 2 ** 30;
const state = (/** @type {number} */ activations) => compose({
  allocated: (60 + activations) * GIB, active: (60 + activations) * GIB, reserved: 95 * GIB, inactiveSplit: null, used: 97 * GIB, process: 97 * GIB, other: 0, heldAtEnd: 60 * GIB, total: 100 * GIB, free: 3 * GIB, moment: "peak",
  categories: { part: 3, parameters: 20 * GIB, gradients: 10 * GIB, gradientsKept: 0, optimizerState: 30 * GIB, optimizerBefore: 30 * GIB, buffers: 0 },
}, null);

test("the rank is set beside the median in each category, bottom to top", () => {
  const rows = compareRows(state(28), [state(18), state(28), state(18), state(19)], 100 * GIB);
  assert.deepEqual(rows.map((row) => [row.layer.id, (row.change ?? NaN) / GIB]), [["parameters", 0], ["gradients", 0], ["optimizer", 0], ["activations", 9.5], ["inside", -9.5], ["context", 0]]);
  assert.equal(mostAbove(rows)?.layer.id, "activations");
  assert.equal(rows.find((row) => row.layer.id === "inside")?.isLarge, false, "less of the cache is no fault");
});

test("a median needs half of the ranks", () => {
  assert.equal(median([1, null, null]), null);
  assert.equal(median([1, 5, null, 2]), 2);
  assert.equal(median([]), null);
});

test("a difference is large above 5 GiB or 5 % of the device", () => {
  assert.equal(isLarge(6 * GIB, null), true);
  assert.equal(isLarge(3 * GIB, 40 * GIB), true);
  assert.equal(isLarge(3 * GIB, 100 * GIB), false);
  assert.equal(isLarge(null, 100), false);
});
