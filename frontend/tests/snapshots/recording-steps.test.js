import assert from "node:assert/strict";
import test from "node:test";
import { firstRange, highestIn, indexOfMoment, lastBefore, stepIndexAt, stepRange, stepText, stepTextAt } from "../../vramscope_frontend/js/snapshots/recording-steps.js";

/** @returns {any} */
const ends = (/** @type {number[]} */ ...x) => x.map((at, i) => ({ x: at, moment: i, step: null, ordinal: i + 1 }));

test("a step is called as the job numbers it, else by its place in the recording", () => {
  assert.equal(stepText({ x: 0, moment: 0, step: 4120, ordinal: 3 }), "step 4,120");
  assert.equal(stepText({ x: 0, moment: 0, step: null, ordinal: 3 }), "recorded step 3");
});

test("which step a moment lies in, also after the last end", () => {
  const steps = ends(10, 20, 30);
  assert.deepEqual([5, 10, 11, 31].map((x) => stepIndexAt(steps, x)), [0, 0, 1, 3]);
  assert.equal(stepTextAt(steps, 31), "recorded step 4");
  assert.equal(stepTextAt([{ x: 10, moment: 0, step: 7, ordinal: 1 }], 99), "step 8");
  assert.equal(stepTextAt([], 1), "");
  assert.deepEqual(stepRange(steps, 0, [2, 40]), [2, 10]);
  assert.deepEqual(stepRange(steps, 3, [2, 40]), [30, 40]);
});

test("a long recording begins with its last steps", () => {
  const steps = ends(10, 20, 30, 40, 50, 60);
  assert.deepEqual(firstRange(steps, [0, 61]), [30, 61]);
  assert.deepEqual(firstRange(steps, [0, 69]), [40, 69], "the step that never ended is one of three");
  assert.equal(firstRange(ends(10, 20, 30), [0, 30]), null);
});

test("the highest moment of a range", () => {
  /** @type {any} */
  const timeline = { x: [1, 2, 3, 4], total: [5, 9, 7, 20] };
  assert.equal(highestIn(timeline, [1, 3]), 1);
  assert.equal(highestIn(timeline, [5, 6]), -1);
});

test("the last moment that is not later", () => {
  assert.deepEqual([0, 1, 2, 3, 9].map((at) => lastBefore([1, 2, 2, 4], at)), [0, 0, 2, 2, 3]);
  assert.equal(indexOfMoment([-1, 5, 9], 7), 1);
});
