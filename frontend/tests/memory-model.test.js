import assert from "node:assert/strict";
import test from "node:test";
import * as fields from "../vramscope_frontend/js/fields.js";
import { highMoments } from "../vramscope_frontend/js/high-moments.js";
import { pictureOf, readingOf } from "../vramscope_frontend/js/memory-model.js";
import { viewFromQuery } from "../vramscope_frontend/js/memory-view.js";
import { appendRows, emptyTable } from "../vramscope_frontend/js/series.js";

const GIB = 2 ** 30;
const steps = (/** @type {number[]} */ xs = [1, 2, 3, 4]) => {
  const made = emptyTable(fields.STEP_FIELDS);
  const all = (/** @type {number} */ value) => xs.map(() => value * GIB);
  appendRows(made, xs, xs, {
    [fields.ALLOCATED]: all(4), [fields.ALLOCATED_PEAK]: xs.map((x) => (x < 3 ? 7 : 9) * GIB), [fields.ACTIVE]: all(4), [fields.ACTIVE_PEAK]: xs.map((x) => (x < 3 ? 7 : 9) * GIB),
    [fields.RESERVED]: all(10), [fields.RESERVED_PEAK]: all(10), [fields.INACTIVE_SPLIT]: all(1), [fields.DEVICE_ALLOCATIONS]: xs.map((x) => (x < 3 ? 5 : 8)), [fields.STEP_DURATION]: xs.map(() => 500_000),
  }, Infinity);
  return made;
};
const samples = () => {
  const made = emptyTable(fields.SAMPLE_FIELDS);
  appendRows(made, [0, 5], [0, 5], { [fields.ALLOCATED]: [4 * GIB, 6 * GIB], [fields.ACTIVE]: [4 * GIB, 6 * GIB], [fields.RESERVED]: [10 * GIB, 10 * GIB], [fields.INACTIVE_SPLIT]: [GIB, GIB], [fields.DEVICE_USED]: [12 * GIB, 12 * GIB], [fields.DEVICE_PROCESS]: [11 * GIB, 11 * GIB], [fields.DEVICE_OTHER]: [GIB, GIB] }, Infinity);
  return made;
};
/** @returns {any} */
const scene = (/** @type {any} */ changes = {}, query = "") => ({ high: highMoments(changes.steps ?? steps(), changes.samples ?? samples()), view: viewFromQuery(new URLSearchParams(query), 1), steps: steps(), samples: samples(), range: [1, 4], limit_bytes: 16 * GIB, limitLabel: "device", limitDashed: false, origin_ns: 0, emulated: false, dimmed: false, marks: [], samplesLost: 0, isWhole: true, silentZones: [], ...changes });

test("end is the end of the last step, peak the highest moment of those shown", () => {
  const { model, reading } = pictureOf(scene(), null);
  assert.equal(reading?.endLabel, "Step end");
  assert.equal(reading?.end.allocated, 4 * GIB);
  assert.equal(reading?.peak.allocated, 9 * GIB);
  assert.match(reading?.peakTitle ?? "", /step 3/);
  assert.deepEqual(model.freeText, { value: "4.0", unit: "free" });
  assert.deepEqual(model.layers?.within?.map((bytes) => bytes / GIB), [3, 0, 5, 0, 0]);
});

test("steps without device data take it from the samples", () => {
  const { reading } = pictureOf(scene(), null);
  assert.equal(reading?.end.usedKnown, true);
  assert.equal(reading?.end.layers.context, GIB);
  assert.equal(reading?.end.layers.other, GIB);
});

test("the reading follows the cursor", () => {
  assert.equal(readingOf(scene(), 3.2)?.endLabel, "step 3");
  assert.equal(readingOf(scene(), 3.2)?.end.allocated, 9 * GIB);
  assert.equal(readingOf(scene(), 1)?.end.allocated, 7 * GIB);
});

test("over time a sample is split by what the step before it handed on", () => {
  const { reading } = pictureOf(scene({ range: [0, 5] }, "x=time"), null);
  assert.equal(reading?.end.layers.held, 4 * GIB);
  assert.equal(reading?.end.layers.within, 2 * GIB);
  assert.equal(reading?.end.layers.stranded, GIB);
});

test("device allocations are differences of the counter, one bar a step that made some", () => {
  const { strips } = pictureOf(scene(), null).model;
  assert.deepEqual(strips.allocations, { x: [3], y: [3], width: 1 });
  assert.deepEqual(strips.stepTime?.y, [500, 500, 500, 500]);
});

test("missing steps are a zone with their count", () => {
  const { zones } = pictureOf(scene({ steps: steps([1, 2, 63, 64]), range: [1, 64] }), null).model;
  assert.deepEqual(zones, [{ x0: 2, x1: 63, quiet: false, text: "60 steps missing" }]);
  assert.deepEqual(pictureOf(scene({ steps: steps([1, 2, 63, 64]), range: [1, 64], isWhole: false }), null).model.zones, [], "rows that are still on their way are not missing");
});

test("lines leave out what is not known", () => {
  const { lines } = pictureOf(scene({ samples: emptyTable(fields.SAMPLE_FIELDS) }, "view=lines"), null).model;
  assert.deepEqual(lines?.map((line) => line.id), ["reserved", "active", "allocated", "held"]);
});

test("no rows: an empty frame with its limit", () => {
  const { model, reading } = pictureOf(scene({ steps: emptyTable(fields.STEP_FIELDS) }), null);
  assert.equal(reading, null);
  assert.equal(model.limit?.bytes, 16 * GIB);
  assert.deepEqual(model.x, []);
});

test("with exact peaks and categories both columns are divided, and the step's part is named", () => {
  const exact = steps();
  const all = (/** @type {number} */ value) => exact.x.map(() => value * GIB);
  Object.assign(exact.columns, {
    [fields.PEAK_ALLOCATED]: exact.x.map((x) => (x === 2 ? 9 : 8) * GIB), [fields.PEAK_ACTIVE]: all(9), [fields.PEAK_RESERVED]: all(11), [fields.PEAK_PART]: exact.x.map(() => 2),
    [fields.PARAMETERS]: all(1), [fields.GRADIENTS]: all(1), [fields.GRADIENTS_KEPT]: all(0), [fields.OPTIMIZER_STATE]: all(2), [fields.BUFFERS]: all(0), "part.backward.time_us": exact.x.map(() => 100_000),
  });
  const { model, reading } = pictureOf(scene({ steps: exact }), null);
  assert.equal(reading?.peakX, 2);
  assert.match(reading?.peakTitle ?? "", /^highest moment of the steps shown: step 2, in backward$/);
  assert.deepEqual([reading?.peak.layers.parameters, reading?.peak.layers.unsplit, reading?.peak.layers.activations].map((bytes) => (bytes ?? NaN) / GIB), [1, 1, 5]);
  assert.equal(reading?.peak.reservedAtMost, true);
  assert.deepEqual([reading?.end.layers.gradients, reading?.end.layers.activations].map((bytes) => (bytes ?? NaN) / GIB), [1, 0]);
  assert.equal(model.layers?.held?.every(Number.isNaN), true);
  assert.equal(pictureOf(scene({ steps: exact }, "y=moving"), null).model.floor, 0.96 * 4 * GIB);
});

test("one step from near: samples along the axis, and the peak of that step alone", () => {
  const near = steps();
  const fine = emptyTable(fields.SAMPLE_FIELDS);
  const t = Array.from({ length: 40 }, (_, i) => i / 10);
  appendRows(fine, t, t, { [fields.ALLOCATED]: t.map((x) => (4 + (x % 1)) * GIB), [fields.ACTIVE]: t.map((x) => (4 + (x % 1)) * GIB), [fields.RESERVED]: t.map(() => 10 * GIB) }, Infinity);
  const { model, reading } = pictureOf(scene({ steps: near, samples: fine, range: [3, 4] }, "from=3&to=4"), null);
  assert.ok(model.x.length > 8 && model.x.some((x) => x % 1 !== 0));
  assert.equal(reading?.peakX, 4);
  const at = readingOf(scene({ steps: near, samples: fine, range: [3, 4] }, "from=3&to=4"), 3.5);
  assert.equal(at?.isSample, true);
  assert.deepEqual(pictureOf(scene({ steps: near, samples: fine, range: [3, 4] }), null).model.x.filter((x) => x % 1 !== 0), [], "a run that has few steps is shown by them");
  assert.equal(at?.place, "step 4, +500 ms");
});
