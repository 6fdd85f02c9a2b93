import assert from "node:assert/strict";
import test from "node:test";
import { clockTicks, niceStep, sizeTicks, stepTicks, stripTop } from "../../vramscope_frontend/js/charts/ticks.js";

test("only the top tick carries the unit and none lies under the limit's label", () => {
  assert.deepEqual(sizeTicks(139.8, "GiB").ticktext, ["0", "20", "40", "60", "80", "100", "120 GiB"]);
  assert.deepEqual(sizeTicks(3, "GiB").ticktext.at(-1), "2.5 GiB");
  assert.ok(Math.max(...sizeTicks(80, "GiB").tickvals) < 80 * 0.97);
});

test("steps are whole, times are round", () => {
  assert.ok(stepTicks(4000, 4004).tickvals.every(Number.isInteger));
  const origin_ns = new Date(2026, 10, 29, 14, 0, 7).getTime() * 1e6;
  assert.deepEqual(clockTicks(0, 600, origin_ns).ticktext, ["14:02", "14:04", "14:06", "14:08", "14:10"]);
});

test("nice numbers", () => {
  assert.equal(niceStep(0.3), 0.5);
  assert.equal(stripTop(491), 500);
  assert.equal(stripTop(0), 1);
});
