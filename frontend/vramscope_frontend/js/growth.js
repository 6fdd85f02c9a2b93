// A measured slope with its error. It claims nothing about causes.

import { known } from "./format.js";

/** Fewer steps than this say nothing about a slope. */
export const LEAST_STEPS = 40;
/** The optimizer's state and the first workspaces appear in the first steps of a run. */
const WARM_UP_STEPS = 10;

/** @typedef {{slope: number, error: number, steps: number}} Growth */

/**
 * Least squares of bytes at step end over step; two standard errors, widened by the correlation of
 * neighbouring steps. Null where there is too little to be honest about.
 * @param {number[]} steps
 * @param {number[]} bytes
 * @returns {Growth | null}
 */
export function growthOf(steps, bytes) {
  /** @type {number[]} */
  const x = [];
  /** @type {number[]} */
  const y = [];
  for (let i = 0; i < steps.length; i++) {
    if (steps[i] >= WARM_UP_STEPS && known(bytes[i])) {
      x.push(steps[i]);
      y.push(bytes[i]);
    }
  }
  const n = x.length;
  if (n < LEAST_STEPS) return null;
  const meanX = mean(x);
  const meanY = mean(y);
  let sxx = 0;
  let sxy = 0;
  for (let i = 0; i < n; i++) {
    sxx += (x[i] - meanX) ** 2;
    sxy += (x[i] - meanX) * (y[i] - meanY);
  }
  const slope = sxy / sxx;
  let squares = 0;
  let neighbours = 0;
  let previous = 0;
  for (let i = 0; i < n; i++) {
    const residual = y[i] - meanY - slope * (x[i] - meanX);
    squares += residual * residual;
    if (i > 0) neighbours += residual * previous;
    previous = residual;
  }
  const correlation = squares > 0 ? Math.min(0.95, Math.max(0, neighbours / squares)) : 0;
  const error = 2 * Math.sqrt((squares / (n - 2) / sxx) * ((1 + correlation) / (1 - correlation)));
  return { slope, error, steps: x[n - 1] - x[0] + 1 };
}

/** @param {number[]} values */
function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Value below which `fraction` of the known values lie.
 * @param {number[]} values
 * @param {number} fraction
 */
export function quantile(values, fraction) {
  const sorted = values.filter(known).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  return sorted[Math.min(sorted.length - 1, Math.floor(fraction * sorted.length))];
}

/**
 * The median: of an even number of values the mean of the two in the middle.
 * @param {number[]} values
 */
export function middle(values) {
  const sorted = values.filter(known).sort((a, b) => a - b);
  const half = sorted.length >> 1;
  if (sorted.length === 0) return null;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
