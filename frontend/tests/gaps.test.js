import assert from "node:assert/strict";
import test from "node:test";
import { missingSteps, silences } from "../vramscope_frontend/js/gaps.js";

const table = (/** @type {number[]} */ x, binWidth = 0) => ({ x, t: x, columns: {}, binWidth });

test("missing steps are counted exactly where rows are as measured", () => {
  assert.deepEqual(missingSteps(table([1, 2, 3, 64, 65])), [{ x0: 3, x1: 64, missing: 60 }]);
  assert.deepEqual(missingSteps(table([1, 2, 3])), []);
});

test("the spacing of bins is no gap, a hole wider than several bins is one without a count", () => {
  assert.deepEqual(missingSteps(table([0, 5, 10, 15], 5)), []);
  assert.deepEqual(missingSteps(table([0, 5, 100], 5)), [{ x0: 5, x1: 100, missing: null }]);
});

test("silence of several seconds is a gap, a slow rate is none", () => {
  assert.equal(silences(table([0, 0.1, 0.2, 51.2, 51.3])).length, 1);
  assert.equal(silences(table([0, 2, 4, 6, 8])).length, 0);
});
