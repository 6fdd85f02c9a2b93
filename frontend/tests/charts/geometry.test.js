import assert from "node:assert/strict";
import test from "node:test";
import { geometryOf, toPixel, toX } from "../../vramscope_frontend/js/charts/geometry.js";
import { sparkPath } from "../../vramscope_frontend/js/charts/spark.js";

test("pixels and x convert into each other", () => {
  const geometry = geometryOf(800, 540, true, true);
  assert.equal(toPixel(geometry, [100, 200], 100), geometry.left);
  assert.ok(Math.abs(toX(geometry, [100, 200], toPixel(geometry, [100, 200], 137)) - 137) < 1e-9);
});

test("without columns the plot is wider, without strips it is higher", () => {
  assert.ok(geometryOf(800, 540, false, true).width > geometryOf(800, 540, true, true).width);
  assert.ok(geometryOf(800, 540, true, false).mainHeight > geometryOf(800, 540, true, true).mainHeight);
});

test("a trend starts where something is known and never leaves its box", () => {
  assert.equal(sparkPath([null, null], 10), null);
  const path = sparkPath([null, 20], 10);
  assert.equal(path?.start, 65);
  assert.match(path?.line ?? "", /^M65\.0 1\.0/);
});

test("the lane keeps its height in a low chart", () => {
  const lane = (/** @type {number} */ height) => {
    const geometry = geometryOf(800, height, false, false);
    return geometry.height - geometry.mainHeight;
  };
  assert.ok(lane(330) > 26);
  assert.ok(lane(540) > lane(330));
});
