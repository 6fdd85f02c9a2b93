import assert from "node:assert/strict";
import test from "node:test";
import * as fields from "../vramscope_frontend/js/fields.js";
import { appendRows, emptyTable } from "../vramscope_frontend/js/series.js";
import { partsNear, partsOf, partsText, placeParts } from "../vramscope_frontend/js/step-parts.js";

const GIB = 2 ** 30;
const table = emptyTable(fields.STEP_FIELDS);
appendRows(table, [1, 2, 3], [1, 2, 3], {
  [fields.PEAK_PART]: [null, 2, 0], [fields.ALLOCATED_VOLUME]: [null, 5 * GIB, null],
  "part.forward.time_us": [null, 200_000, 100_000], "part.backward.time_us": [null, 500_000, null], "part.optimizer.time_us": [null, 100_000, 400_000],
  "part.backward.peak_bytes": [null, 9 * GIB, null], "part.backward.volume_bytes": [null, 4 * GIB, null],
}, Infinity);

test("a step that was not split has no parts", () => {
  assert.equal(partsOf(table, 0), null);
  assert.equal(partsText(null), "");
});

test("the part with the peak is named, what is not known is null", () => {
  const parts = partsNear(table, 1);
  assert.equal(parts?.highest, "backward");
  assert.deepEqual(parts?.rows[1], { name: "backward", time_s: 0.5, volume: 4 * GIB, peak: 9 * GIB, isHighest: true });
  assert.deepEqual(parts?.rows[0], { name: "forward", time_s: 0.2, volume: null, peak: null, isHighest: false });
  assert.equal(partsText(parts), "Highest in backward. 5.0 GiB handed out in the step.");
});

test("a peak outside of the parts is said", () => {
  assert.equal(partsText(partsNear(table, 2)), "Highest outside of forward, backward and optimizer.");
});

test("parts lie in their order up to the end of the step, and never before its begin", () => {
  const parts = partsOf(table, 1);
  assert.ok(parts);
  const round = (/** @type {number} */ t) => Math.round(t * 1000) / 1000;
  assert.deepEqual(placeParts(parts, 1, 2).map((one) => [one.name, round(one.x0), round(one.x1)]), [["forward", 1.2, 1.4], ["backward", 1.4, 1.9], ["optimizer", 1.9, 2]]);
  assert.deepEqual(placeParts(parts, 1.85, 2).map((one) => [one.name, round(one.x0)]), [["backward", 1.85], ["optimizer", 1.9]]);
});

test("a step that was not split is shown by the last one before it that was", () => {
  const some = emptyTable(fields.STEP_FIELDS);
  appendRows(some, [7, 8, 9], [7, 8, 9], { "part.forward.time_us": [null, 200_000, null] }, Infinity);
  const parts = partsNear(some, 2);
  assert.deepEqual([parts?.number, parts?.isOwn, partsText(parts)], [8, false, ""]);
  assert.equal(partsNear(some, 0), null);
});
