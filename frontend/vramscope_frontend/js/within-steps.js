// A few steps from near: samples in place of one row a step, as far as there are any, and where the
// forward, the backward and the optimizer of each step lie. Pure.

import * as fields from "./fields.js";
import { known } from "./format.js";
import { numberOf } from "./numbering.js";
import { indexAt, isRolledUp, lowerBound, rowsBetween, takeRows, xAtTime } from "./series.js";
import { partsOf, placeParts } from "./step-parts.js";

/** @typedef {import("./series.js").Table} Table */
/** A part of a step along the axis of steps. @typedef {{x0: number, x1: number, name: string, time_s: number, title: string, peak: number | null}} PartBand */

/** From this many steps down samples take the place of rows. */
export const FEW_STEPS = 10;
/** Fewer samples a step would show less than the exact row of the step does. */
const LEAST_SAMPLES = 3;

/**
 * Seconds that a range of steps stands for.
 * @param {Table} steps
 * @param {[number, number]} range
 * @returns {[number, number] | null} null where steps are missing, or there are too many
 */
export function secondsOf(steps, range) {
  if (range[1] - range[0] > FEW_STEPS) return null;
  const from = indexAt(steps.x, Math.floor(range[0]));
  const to = lowerBound(steps.x, Math.ceil(range[1]));
  const last = Math.min(to, steps.x.length - 1);
  return from >= 0 && last > from && steps.x[last] - steps.x[from] === last - from ? [steps.t[from], steps.t[last]] : null;
}

/**
 * Samples along the axis of steps: what lies between 17 and 18 is within step 18.
 * @param {Table} steps
 * @param {Table} samples
 * @param {[number, number]} range
 * @returns {Table | null} null where rows of steps say more
 */
export function samplesWithin(steps, samples, range) {
  const seconds = secondsOf(steps, range);
  if (!seconds) return null;
  const [from, to] = rowsBetween(samples, seconds[0], seconds[1]);
  // The row before the range may be of a coarser answer.
  const start = from < to && isRolledUp(samples, from) ? from + 1 : from;
  const shown = Array.from({ length: to - start }, (_, i) => start + i);
  const count = indexAt(steps.t, seconds[1]) - indexAt(steps.t, seconds[0]);
  if (shown.length < LEAST_SAMPLES * count || shown.some((i) => isRolledUp(samples, i))) return null;
  const taken = takeRows(samples, shown);
  return { ...taken, x: taken.t.map((t) => xAtTime(steps, t)) };
}

/**
 * The step that a place between two step ends lies in, and how long after its begin.
 * @param {Table} steps
 * @param {number} x
 * @returns {{number: number, index: number, after_s: number | null}}
 */
export function placeWithin(steps, x) {
  const index = Math.min(steps.x.length - 1, lowerBound(steps.x, x));
  const start_t = steps.t[index - 1];
  const share = x - (steps.x[index] - 1);
  return { number: numberOf(steps, index), index, after_s: known(start_t) ? Math.max(0, share * (steps.t[index] - start_t)) : null };
}

/**
 * @param {Table} steps
 * @param {[number, number]} range
 * @returns {PartBand[]}
 */
export function partBands(steps, range) {
  if (range[1] - range[0] > FEW_STEPS) return [];
  const [from, to] = rowsBetween(steps, range[0], range[1] + 1);
  /** @type {PartBand[]} */
  const bands = [];
  for (let i = Math.max(1, from); i < to; i++) {
    const parts = partsOf(steps, i);
    if (!parts || steps.x[i] !== steps.x[i - 1] + 1) continue;
    const span_t = steps.t[i] - steps.t[i - 1];
    const place = (/** @type {number} */ t) => steps.x[i] - 1 + (t - steps.t[i - 1]) / span_t;
    for (const { x0, x1, name, title } of placeParts(parts, steps.t[i - 1], steps.t[i])) {
      const part = parts.rows.find((row) => row.name === name);
      const peak = steps.columns[fields.PEAK_ALLOCATED]?.[i];
      bands.push({ x0: place(x0), x1: place(x1), name, time_s: part?.time_s ?? 0, title, peak: part?.isHighest && known(peak) ? peak : null });
    }
  }
  return bands;
}
