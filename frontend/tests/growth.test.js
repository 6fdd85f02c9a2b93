import assert from "node:assert/strict";
import test from "node:test";
import { growthOf, middle, quantile } from "../vramscope_frontend/js/growth.js";

const steps = Array.from({ length: 400 }, (_, i) => i);
const noise = (/** @type {number} */ i) => ((Math.sin(i * 12.9898) * 43758.5453) % 1) * 1000;

test("a slope is found within its error", () => {
  const growth = growthOf(steps, steps.map((i) => 5000 + 3 * i + noise(i)));
  assert.ok(growth);
  assert.ok(Math.abs(growth.slope - 3) <= growth.error, `${growth.slope} ± ${growth.error}`);
  assert.equal(growth.steps, 390);
});

test("noise has no slope beyond its error", () => {
  const growth = growthOf(steps, steps.map((i) => 5000 + noise(i)));
  assert.ok(growth);
  assert.ok(Math.abs(growth.slope) <= growth.error);
});

test("neighbours that move together widen the error", () => {
  const wander = steps.map((i) => 1000 * Math.sin(i / 60));
  const shaken = steps.map((i) => wander[(i * 137) % 400]);
  assert.ok((growthOf(steps, wander)?.error ?? 0) > 2 * (growthOf(steps, shaken)?.error ?? 0));
});

test("few steps and unknown values say nothing", () => {
  assert.equal(growthOf(steps.slice(0, 45), steps.slice(0, 45)), null);
  assert.equal(growthOf(steps, steps.map(() => NaN)), null);
});

test("quantiles ignore what is not known", () => {
  assert.equal(quantile([NaN, 3, 1, 2], 0.5), 2);
  assert.equal(quantile([NaN], 0.5), null);
});

test("the median of an even number of values lies between the two in the middle", () => {
  assert.equal(middle([5, 1, 3]), 3);
  assert.equal(middle([1, 9, NaN, 3, 5]), 4);
  assert.equal(middle([]), null);
});
