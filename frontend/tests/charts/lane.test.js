import assert from "node:assert/strict";
import test from "node:test";
import { placeBands } from "../../vramscope_frontend/js/charts/lane.js";
import { geometryOf } from "../../vramscope_frontend/js/charts/geometry.js";

const geometry = geometryOf(1072, 540, false, true);
/** @returns {any} */
const band = (/** @type {number} */ x0, /** @type {number} */ x1, name = "eval") => ({ x0, x1, name, kind: "eval", title: name });
const place = (/** @type {any[]} */ bands, /** @type {number[]} */ marks = []) => placeBands(bands, geometry, [0, 1000], marks);

test("an evaluation between two steps is still seen", () => {
  const [one] = place([band(500, 500)]);
  assert.ok(one.width >= 3);
  assert.equal(one.label, "eval");
});

test("bands stay within the chart, those outside are left out", () => {
  const placed = place([band(-50, 20), band(990, 2000, "b"), band(1500, 1600)]);
  assert.equal(placed.length, 2);
  assert.equal(placed[0].left, geometry.left);
  assert.ok(placed[1].left + placed[1].width <= geometry.left + geometry.width);
});

test("bands that touch are all named in one place, or the widest where there is no room", () => {
  const placed = place([band(100, 140), band(140, 146, "checkpoint")]);
  assert.deepEqual(placed.map((one) => one.label), ["eval · checkpoint", ""]);
  assert.ok(placed[0].labelLeft > placed[1].left + placed[1].width);
  assert.equal(place([band(100, 140), band(140, 146, "checkpoint"), band(200, 210)])[0].label, "eval");
});

test("a name that would run into the next band or mark is left out", () => {
  assert.deepEqual(place([band(100, 110), band(130, 140)]).map((one) => one.label), ["", "eval"]);
  assert.equal(place([band(100, 110)], [geometry.left + 130])[0].label, "");
  assert.equal(place([band(985, 999)])[0].label, "");
});

test("what would be one smear of bands becomes one with a count", () => {
  const [one, ...others] = place(Array.from({ length: 300 }, (_, i) => band(300 + i * 0.5, 300 + i * 0.5 + 0.1)));
  assert.equal(others.length, 0);
  assert.equal(one.title, "eval, 300 stretches");
});
