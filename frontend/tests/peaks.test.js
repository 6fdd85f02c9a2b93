import assert from "node:assert/strict";
import test from "node:test";
import * as fields from "../vramscope_frontend/js/fields.js";
import { peakOf } from "../vramscope_frontend/js/peaks.js";
import { appendRows, emptyTable } from "../vramscope_frontend/js/series.js";

const MIB = 2 ** 20;
const mib = (/** @type {number[]} */ ...values) => values.map((value) => value * MIB);
const steps = emptyTable(fields.STEP_FIELDS);
appendRows(steps, [1, 2], [1, 2], { [fields.RESERVED]: mib(10, 10), [fields.RESERVED_PEAK]: mib(10, 14) }, Infinity);

test("exact step peaks win over samples, with what lies outside of PyTorch added", () => {
  const samples = emptyTable(fields.SAMPLE_FIELDS);
  appendRows(samples, [0], [0], { [fields.RESERVED]: mib(10), [fields.DEVICE_USED]: mib(12) }, Infinity);
  assert.deepEqual(peakOf(steps, samples), { used: 16 * MIB, usedKnown: true, step: 2 });
});

test("a sample that was higher than any step counts", () => {
  const samples = emptyTable(fields.SAMPLE_FIELDS);
  appendRows(samples, [0, 1], [0, 1], { [fields.RESERVED]: mib(10, 10), [fields.DEVICE_USED]: mib(30, 12), [fields.STEP]: [7, 8] }, Infinity);
  assert.deepEqual(peakOf(steps, samples), { used: 30 * MIB, usedKnown: true, step: 7 });
});

test("without the driver the peak is PyTorch's alone and says so", () => {
  assert.deepEqual(peakOf(steps, emptyTable(fields.SAMPLE_FIELDS)), { used: 14 * MIB, usedKnown: false, step: 2 });
  assert.equal(peakOf(emptyTable(fields.STEP_FIELDS), emptyTable(fields.SAMPLE_FIELDS)), null);
});

test("a byte of rounding does not move the peak to a later step", () => {
  const almost = emptyTable(fields.STEP_FIELDS);
  appendRows(almost, [1, 2, 3], [1, 2, 3], { [fields.RESERVED]: mib(9, 9, 9), [fields.RESERVED_PEAK]: [9 * MIB, 14 * MIB, 14 * MIB + 1] }, Infinity);
  assert.equal(peakOf(almost, emptyTable(fields.SAMPLE_FIELDS))?.step, 2);
});
