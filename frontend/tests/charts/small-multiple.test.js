import assert from "node:assert/strict";
import test from "node:test";
import { HEIGHT, multiplePath, WIDTH } from "../../vramscope_frontend/js/charts/small-multiple.js";

const T = [0, 10, 20, 30];

test("use is drawn in steps from 0 to the limit", () => {
  assert.deepEqual(multiplePath(T, [0, 50, 100, 100], [0, 40], 100), {
    line: `M0.0 ${HEIGHT}.0H60.0V28.5H120.0V1.0H180.0V1.0H${WIDTH}.0`,
    area: `M0.0 ${HEIGHT}V${HEIGHT}.0H60.0V28.5H120.0V1.0H180.0V1.0H${WIDTH}.0V${HEIGHT}Z`,
  });
  // More than the limit does not leave the picture.
  assert.equal(multiplePath(T, [200, 200, 200, 200], [0, 40], 100)?.line.includes("-"), false);
});

test("what is not known is a hole, and what lies outside of the range is left out", () => {
  const path = multiplePath(T, [50, NaN, 50, 50], [0, 40], 100);
  assert.equal(path?.line.match(/M/g)?.length, 2);
  assert.equal(path?.area.match(/Z/g)?.length, 2);
  assert.equal(multiplePath(T, [50, 50, 50, 50], [15, 25], 100)?.line, `M0.0 28.5H120.0V28.5H${WIDTH}.0`);
  assert.equal(multiplePath(T, [50, 50, 50, 50], [50, 60], 100), null);
  assert.equal(multiplePath(T, [NaN, NaN], [0, 40], 100), null);
});
