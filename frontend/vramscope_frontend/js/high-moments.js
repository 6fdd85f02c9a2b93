// The highest moment of each step, as far as it is known. Pure.
//
// PyTorch's peaks are those since the last reset, so they tell the peak of one step only when they
// move. Otherwise the highest sample within the step is shown, a state that did exist; the end of
// the step is the least that is always known.

import * as fields from "./fields.js";
import { known } from "./format.js";
import { beginsLife, numberOf } from "./numbering.js";
import { indexAt, isRolledUp, LIFE, lowerBound, SPAN } from "./series.js";

/** @typedef {import("./series.js").Table} Table */

/** Allocated when the step ends, beside the higher moment within it. */
export const HELD = "held_at_end";

const STATE = [fields.ALLOCATED, fields.ACTIVE, fields.RESERVED, fields.INACTIVE_SPLIT, fields.DEVICE_USED, fields.DEVICE_PROCESS, fields.DEVICE_OTHER];
const KEPT = [fields.DEVICE_ALLOCATIONS, fields.RETRIES, fields.STEP_DURATION, fields.STEP, LIFE];

/**
 * One row a step with the state at its highest known moment.
 * @param {Table} steps
 * @param {Table} samples
 * @returns {Table}
 */
export function highMoments(steps, samples) {
  const rows = steps.x.length;
  /** @type {Record<string, number[]>} */
  const columns = { [HELD]: steps.columns[fields.ALLOCATED] ?? [] };
  for (const name of KEPT) if (steps.columns[name]) columns[name] = steps.columns[name];
  for (const name of STATE) columns[name] = new Array(rows);
  let from = 0;
  for (let i = 0; i < rows; i++) {
    const to = lowerBound(samples.x, steps.t[i] + 1e-9);
    const sample = highestSample(samples, reachesInto(samples, from - 1, i > 0 ? steps.t[i - 1] : -Infinity) ? from - 1 : from, to);
    from = to;
    const state = highestState(steps, i, samples, sample);
    for (const name of STATE) columns[name][i] = state[name] ?? NaN;
  }
  return { x: steps.x, t: steps.t, columns, binWidth: steps.binWidth };
}

/**
 * Whether a rolled-up sample that began before a step goes on into it.
 * @param {Table} samples
 * @param {number} index
 * @param {number} start_t
 */
function reachesInto(samples, index, start_t) {
  return index >= 0 && isRolledUp(samples, index) && samples.x[index] + samples.columns[SPAN][index] > start_t;
}

/**
 * @param {Table} samples
 * @param {number} from
 * @param {number} to
 */
function highestSample(samples, from, to) {
  const allocated = samples.columns[fields.ALLOCATED];
  let best = -1;
  if (allocated) for (let i = from; i < to; i++) if (known(allocated[i]) && (best < 0 || allocated[i] > allocated[best])) best = i;
  return best;
}

/**
 * @param {Table} steps
 * @param {number} i
 * @param {Table} samples
 * @param {number} sample index, -1 for none
 * @returns {Record<string, number>}
 */
function highestState(steps, i, samples, sample) {
  const end = endState(steps, i, samples);
  const seen = sample < 0 ? -Infinity : samples.columns[fields.ALLOCATED][sample];
  const peak = movedPeak(steps, i, fields.ALLOCATED_PEAK);
  const at_end = known(end[fields.ALLOCATED]) ? end[fields.ALLOCATED] : -Infinity;
  if (peak > at_end && peak > seen) return peakState(steps, i, peak, end);
  return withReservedPeak(seen > at_end ? sampleState(samples, sample, end) : end, movedPeak(steps, i, fields.RESERVED_PEAK));
}

/**
 * A cache that was larger for a moment than at the sample: head-room is judged by it, so it is drawn.
 * @param {Record<string, number>} state
 * @param {number} peak_bytes
 * @returns {Record<string, number>}
 */
function withReservedPeak(state, peak_bytes) {
  const rise = peak_bytes - state[fields.RESERVED];
  if (!(rise > 0)) return state;
  return {
    ...state,
    [fields.RESERVED]: peak_bytes,
    [fields.INACTIVE_SPLIT]: NaN,
    [fields.DEVICE_USED]: state[fields.DEVICE_USED] + rise,
    [fields.DEVICE_PROCESS]: state[fields.DEVICE_PROCESS] + rise,
  };
}

/**
 * A peak that moved in the step; -Infinity when it says nothing about this step.
 * @param {Table} steps
 * @param {number} i
 * @param {string} name
 */
function movedPeak(steps, i, name) {
  const peaks = steps.columns[name];
  if (!peaks || !known(peaks[i])) return -Infinity;
  // The first row may hold a peak from before; one that fell was reset and grew anew in this step.
  if (beginsLife(steps, i)) return numberOf(steps, i) <= 1 ? peaks[i] : -Infinity;
  return known(peaks[i - 1]) && peaks[i] === peaks[i - 1] ? -Infinity : peaks[i];
}

/**
 * The end of a step. Rows that carry no device data take what lies outside of PyTorch from the
 * sample before them.
 * @param {Table} steps
 * @param {number} i
 * @param {Table} samples
 * @returns {Record<string, number>}
 */
export function endState(steps, i, samples) {
  /** @type {Record<string, number>} */
  const state = {};
  for (const name of STATE) state[name] = steps.columns[name]?.[i] ?? NaN;
  if (known(state[fields.DEVICE_USED])) return state;
  const before = indexAt(samples.x, steps.t[i]);
  const sample = before < 0 ? 0 : before;
  const reserved = samples.columns[fields.RESERVED]?.[sample];
  if (!known(reserved)) return state;
  state[fields.DEVICE_USED] = state[fields.RESERVED] + Math.max(0, samples.columns[fields.DEVICE_USED][sample] - reserved);
  state[fields.DEVICE_PROCESS] = state[fields.RESERVED] + Math.max(0, samples.columns[fields.DEVICE_PROCESS][sample] - reserved);
  state[fields.DEVICE_OTHER] = samples.columns[fields.DEVICE_OTHER][sample];
  return state;
}

/**
 * @param {Table} samples
 * @param {number} sample
 * @param {Record<string, number>} end
 * @returns {Record<string, number>}
 */
function sampleState(samples, sample, end) {
  /** @type {Record<string, number>} */
  const state = {};
  for (const name of STATE) state[name] = samples.columns[name][sample];
  // A rolled-up sample holds the highest of each counter: no split of the free part did exist.
  if (isRolledUp(samples, sample)) state[fields.INACTIVE_SPLIT] = NaN;
  if (!known(state[fields.RESERVED])) state[fields.RESERVED] = end[fields.RESERVED];
  return state;
}

/**
 * @param {Table} steps
 * @param {number} i
 * @param {number} peak
 * @param {Record<string, number>} end
 * @returns {Record<string, number>}
 */
function peakState(steps, i, peak, end) {
  const active = movedPeak(steps, i, fields.ACTIVE_PEAK);
  const state = withReservedPeak(end, movedPeak(steps, i, fields.RESERVED_PEAK));
  // How the free part inside segments was split at that moment is not kept.
  return { ...state, [fields.ALLOCATED]: peak, [fields.ACTIVE]: Math.max(peak, active), [fields.INACTIVE_SPLIT]: NaN };
}
