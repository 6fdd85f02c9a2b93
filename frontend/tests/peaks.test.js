import assert from "node:assert/strict";
import test from "node:test";
import * as fields from "../vramscope_frontend/js/fields.js";
import { peakOf } from "../vramscope_frontend/js/peaks.js";
import { appendRows, emptyTable } from "../vramscope_frontend/js/series.js";

const steps = emptyTable(fields.STEP_FIELDS);
appendRows(steps, [1, 2], [1, 2], { [fields.RESERVED]: [10, 10], [fields.RESERVED_PEAK]: [10, 14] }, Infinity);

test("exact step peaks win over samples, with what lies outside of PyTorch added", () => {
  const samples = emptyTable(fields.SAMPLE_FIELDS);
  appendRows(samples, [0], [0], { [fields.RESERVED]: [10], [fields.DEVICE_USED]: [12] }, Infinity);
  assert.deepEqual(peakOf(steps, samples), { used: 16, usedKnown: true, step: 2 });
});

test("a sample that was higher than any step counts", () => {
  const samples = emptyTable(fields.SAMPLE_FIELDS);
  appendRows(samples, [0, 1], [0, 1], { [fields.RESERVED]: [10, 10], [fields.DEVICE_USED]: [30, 12], [fields.STEP]: [7, 8] }, Infinity);
  assert.deepEqual(peakOf(steps, samples), { used: 30, usedKnown: true, step: 7 });
});

test("without the driver the peak is PyTorch's alone and says so", () => {
  assert.deepEqual(peakOf(steps, emptyTable(fields.SAMPLE_FIELDS)), { used: 14, usedKnown: false, step: 2 });
  assert.equal(peakOf(emptyTable(fields.STEP_FIELDS), emptyTable(fields.SAMPLE_FIELDS)), null);
});
