import assert from "node:assert/strict";
import test from "node:test";
import { AT_MOST, OPTIMIZER_BEFORE } from "../vramscope_frontend/js/composition.js";
import * as fields from "../vramscope_frontend/js/fields.js";
import { HELD, highMoments, MOMENT, MOMENTS } from "../vramscope_frontend/js/high-moments.js";
import { appendRows, emptyTable, SPAN } from "../vramscope_frontend/js/series.js";

const stepsOf = (/** @type {number[]} */ peaks, first = 1) => {
  const made = emptyTable(fields.STEP_FIELDS);
  const xs = peaks.map((_, i) => first + i);
  appendRows(made, xs, xs, { [fields.ALLOCATED]: xs.map(() => 10), [fields.ACTIVE]: xs.map(() => 10), [fields.ALLOCATED_PEAK]: peaks, [fields.RESERVED]: xs.map(() => 30), [fields.RESERVED_PEAK]: xs.map(() => 50) }, Infinity);
  return made;
};
const samplesOf = (/** @type {number[]} */ t, /** @type {number[]} */ allocated, binWidth = 0) => {
  const made = emptyTable(fields.SAMPLE_FIELDS);
  appendRows(made, t, t, { [fields.ALLOCATED]: allocated, [fields.ACTIVE]: allocated, [fields.RESERVED]: t.map(() => 30), [fields.INACTIVE_SPLIT]: t.map(() => 2), [fields.DEVICE_USED]: t.map(() => 33) }, Infinity);
  made.columns[SPAN] = t.map(() => binWidth);
  return made;
};
const allocated = (/** @type {ReturnType<typeof highMoments>} */ table) => table.columns[fields.ALLOCATED];

test("a peak that rose belongs to its step, one that stands says nothing about the next", () => {
  const high = highMoments(stepsOf([20, 20, 25, 25]), samplesOf([], []));
  assert.deepEqual(allocated(high), [20, 10, 25, 10]);
  assert.deepEqual(high.columns[HELD], [10, 10, 10, 10]);
});

test("a peak that fell was reset within the step", () => {
  assert.deepEqual(allocated(highMoments(stepsOf([20, 18, 18]), samplesOf([], []))), [20, 18, 10]);
});

test("a peak from before the first row that was seen is not the peak of that row", () => {
  assert.deepEqual(allocated(highMoments(stepsOf([20, 20], 500), samplesOf([], []))), [10, 10]);
});

test("otherwise the highest sample within the step is shown, as the state that did exist", () => {
  const high = highMoments(stepsOf([20, 20, 20]), samplesOf([1.2, 1.5, 2.5], [14, 17, 12]));
  assert.deepEqual(allocated(high), [20, 17, 12]);
  assert.deepEqual(high.columns[fields.INACTIVE_SPLIT].slice(1), [2, 2]);
  assert.equal(high.columns[fields.RESERVED][1], 30);
});

test("rolled-up samples know no split", () => {
  const high = highMoments(stepsOf([20, 20]), samplesOf([1.2], [14], 1));
  assert.ok(Number.isNaN(high.columns[fields.INACTIVE_SPLIT][1]));
});

test("a rolled-up sample counts for every step that it reaches into, a measured one for its own", () => {
  assert.deepEqual(allocated(highMoments(stepsOf([20, 20, 20, 20]), samplesOf([1.2], [14], 1.5))), [20, 14, 14, 10]);
  assert.deepEqual(allocated(highMoments(stepsOf([20, 20, 20, 20]), samplesOf([1.2], [14]))), [20, 14, 10, 10]);
});

test("memory that was given back is not drawn because a peak remembers it", () => {
  const high = highMoments(stepsOf([20, 20, 20]), samplesOf([1.5, 2.5], [17, 17]));
  assert.deepEqual(high.columns[fields.RESERVED].slice(1), [30, 30]);
});

test("step rows without device data take what lies outside of PyTorch from the sample before", () => {
  const high = highMoments(stepsOf([20, 20]), samplesOf([0.5], [1]));
  assert.deepEqual(high.columns[fields.DEVICE_USED], [53, 33]);
});

test("a cache that grew for a moment is drawn in its step, whatever the samples saw", () => {
  const steps = stepsOf([20, 20, 20]);
  steps.columns[fields.RESERVED_PEAK] = [50, 60, 60];
  const high = highMoments(steps, samplesOf([1.5, 2.5], [17, 17]));
  assert.deepEqual(high.columns[fields.RESERVED].slice(1), [60, 30]);
  assert.deepEqual(high.columns[fields.DEVICE_USED].slice(1), [63, 33]);
  assert.equal(allocated(high)[1], 17);
  assert.ok(Number.isNaN(high.columns[fields.INACTIVE_SPLIT][1]), "its split is not known");
});

test("peaks that are counted by step are exact, whatever the samples and the job's own peaks say", () => {
  const steps = stepsOf([20, 20, 20]);
  Object.assign(steps.columns, { [fields.PEAK_ALLOCATED]: [18, 15, NaN], [fields.PEAK_ACTIVE]: [18, 16, NaN], [fields.PEAK_RESERVED]: [40, 30, NaN], [fields.DEVICE_ALLOCATIONS]: [5, 5, 5], [fields.OPTIMIZER_STATE]: [3, 4, 4] });
  const high = highMoments(steps, samplesOf([1.5, 2.5], [12, 13]));
  assert.deepEqual(allocated(high), [18, 15, 13], "the last step is of an agent that does not count by step");
  assert.deepEqual(high.columns[fields.RESERVED], [40, 30, 30]);
  assert.deepEqual(high.columns[MOMENT].map((code) => MOMENTS[code]), ["peak", "peak", "instant"]);
  assert.deepEqual(high.columns[AT_MOST].slice(0, 2), [1, 0], "reserved stood still all through the second step");
  assert.deepEqual(high.columns[OPTIMIZER_BEFORE].slice(1), [3, 4]);
});

test("rows that grew are looked at from their end only, with the same answer", () => {
  const all = Array.from({ length: 60 }, (_, i) => 20 + (i % 7));
  const samples = samplesOf(all.map((_, i) => i + 0.5), all.map((_, i) => 12 + (i % 5)));
  const steps = stepsOf(all.slice(0, 40));
  const before = highMoments(steps, samples);
  const grown = stepsOf(all);
  for (let i = 40; i < 60; i++) {
    steps.x.push(grown.x[i]);
    steps.t.push(grown.t[i]);
    for (const name in steps.columns) steps.columns[name].push(grown.columns[name][i]);
  }
  assert.deepEqual(highMoments(steps, samples, before).columns, highMoments(grown, samples).columns);
});
