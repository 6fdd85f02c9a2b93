import assert from "node:assert/strict";
import test from "node:test";
import * as fields from "../vramscope_frontend/js/fields.js";
import { appendRows, emptyTable, SPAN, stepColumns } from "../vramscope_frontend/js/series.js";
import { partBands, placeWithin, samplesWithin, secondsOf } from "../vramscope_frontend/js/within-steps.js";

const xs = Array.from({ length: 40 }, (_, i) => i + 1);
const steps = emptyTable(stepColumns(fields.STEP_FIELDS));
appendRows(steps, xs, xs.map((x) => x / 2), {
  [fields.STEP]: xs, [fields.PEAK_PART]: xs.map(() => 2), [fields.PEAK_ALLOCATED]: xs.map(() => 9),
  "part.forward.time_us": xs.map(() => 100_000), "part.backward.time_us": xs.map(() => 250_000), "part.optimizer.time_us": xs.map(() => 50_000),
}, Infinity);
const samplesEvery = (/** @type {number} */ every, span = 0) => {
  const made = emptyTable(fields.SAMPLE_FIELDS);
  const ts = Array.from({ length: Math.floor(20 / every) }, (_, i) => i * every);
  appendRows(made, ts, ts, { [fields.ALLOCATED]: ts }, Infinity);
  made.columns[SPAN] = ts.map(() => span);
  return made;
};

test("a few steps are shown by their samples, each where it was taken", () => {
  const near = samplesWithin(steps, samplesEvery(0.1), [17, 18]);
  assert.deepEqual(near?.t.map((t) => Math.round(t * 10) / 10), [8.4, 8.5, 8.6, 8.7, 8.8, 8.9, 9].slice(near.t.length === 7 ? 0 : 1));
  const index = near?.t.findIndex((t) => Math.abs(t - 8.7) < 1e-6) ?? -1;
  assert.ok(Math.abs((near?.x[index] ?? 0) - 17.4) < 1e-6);
});

test("where samples are few, rolled up or the steps many, rows of steps stay", () => {
  assert.equal(samplesWithin(steps, samplesEvery(0.4), [10, 20]), null);
  assert.equal(samplesWithin(steps, samplesEvery(0.1, 1), [17, 18]), null);
  assert.equal(samplesWithin(steps, samplesEvery(0.1), [10, 21]), null);
  assert.deepEqual(secondsOf(steps, [17, 18]), [8.5, 9]);
});

test("a place between 17 and 18 is in step 18", () => {
  const place = placeWithin(steps, 17.4);
  assert.equal(place.number, 18);
  assert.ok(Math.abs((place.after_s ?? 0) - 0.2) < 1e-9);
  assert.equal(placeWithin(steps, 18).number, 18);
});

test("parts lie within their step, and the one with the peak knows how high it was", () => {
  const bands = partBands(steps, [17, 18]).filter((band) => band.x0 >= 17 && band.x1 <= 18 + 1e-9);
  assert.deepEqual(bands.map((band) => [band.name, Math.round(band.x0 * 100) / 100, Math.round(band.x1 * 100) / 100, band.peak]), [["forward", 17.2, 17.4, null], ["backward", 17.4, 17.9, 9], ["optimizer", 17.9, 18, null]]);
  assert.deepEqual(partBands(steps, [1, 30]), []);
});
