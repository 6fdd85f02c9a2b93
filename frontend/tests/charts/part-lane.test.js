import assert from "node:assert/strict";
import test from "node:test";
import { geometryOf } from "../../vramscope_frontend/js/charts/geometry.js";
import { placePartBands } from "../../vramscope_frontend/js/charts/part-lane.js";

const GIB = 2 ** 30;
const geometry = geometryOf(1072, 540, false, true, true);
const part = (/** @type {string} */ name, /** @type {number} */ x0, /** @type {number} */ x1, /** @type {number | null} */ peak = null) => ({ x0, x1, name, time_s: 0.25, title: "", peak });
const place = (/** @type {any[]} */ parts, floor = 0) => placePartBands({ parts, range: [17, 18], limit: { bytes: 10 * GIB, label: "device", dashed: false }, highest: 9 * GIB, floor }, geometry);

test("a part has its name and its time where there is room, and stays within the chart", () => {
  const [wide, narrow] = place([part("backward", 16.5, 17.5), part("optimizer", 17.97, 18)]);
  assert.equal(wide.label, "backward 250 ms");
  assert.equal(wide.left, geometry.left);
  assert.equal(narrow.label, "");
  assert.equal(place([part("forward", 16, 16.9)]).length, 0);
});

test("the peak is drawn at its height in its part", () => {
  const [one] = place([part("backward", 17.2, 17.8, 5.05 * GIB)]);
  assert.equal(Math.round(one.peak?.top ?? 0), Math.round(geometry.mainTop + geometry.mainHeight * 0.5));
  assert.equal(one.peak?.text, "5.1 GiB peak of the step");
  assert.equal(place([part("backward", 17.2, 17.8, 5 * GIB)], 6 * GIB)[0].peak, null, "below the begin of the axis");
});
