// The highest moment of each step, as far as it is known. Pure.
//
// Agents that reset the peaks at each step tell it exactly. Of the others PyTorch's peaks are those
// since the last reset, so they tell the peak of one step only when they move. Otherwise the highest
// sample within the step is shown, a state that did exist; the end of the step is the least that is
// always known.

import { AT_MOST, OPTIMIZER_BEFORE } from "./composition.js";
import * as fields from "./fields.js";
import { known } from "./format.js";
import { beginsLife, numberOf } from "./numbering.js";
import { indexAt, isRolledUp, LIFE, lowerBound, SPAN } from "./series.js";

/** @typedef {import("./series.js").Table} Table */

/** Allocated when the step ends, beside the higher moment within it. */
export const HELD = "held_at_end";

/** What kind of moment a row is: place in MOMENTS. */
export const MOMENT = "moment_of_row";
/** @type {import("./waterfall.js").Moment[]} */
export const MOMENTS = ["end", "instant", "peak"];
const [END, INSTANT, PEAK] = [0, 1, 2];

const DEVICE = [fields.DEVICE_USED, fields.DEVICE_PROCESS, fields.DEVICE_OTHER, fields.DEVICE_TOTAL, fields.DEVICE_FREE];
const CACHE = [fields.RETURNABLE, fields.STRANDED, fields.PRIVATE_POOL];
const STATE = [fields.ALLOCATED, fields.ACTIVE, fields.RESERVED, fields.INACTIVE_SPLIT, ...DEVICE, ...CACHE, MOMENT, AT_MOST];
const PARTS = fields.PARTS.flatMap((part) => [fields.partField(part, "peak_bytes"), fields.partField(part, "volume_bytes"), fields.partField(part, "time_us")]);
const KEPT = [fields.DEVICE_ALLOCATIONS, fields.RETRIES, fields.STEP_DURATION, fields.STEP, LIFE, fields.PEAK_ALLOCATED, fields.PEAK_PART, fields.ALLOCATED_VOLUME, ...fields.CATEGORY_FIELDS, ...PARTS];

/** Samples come a little later than the steps that they are of. */
const SETTLED_S = 5;

/**
 * One row a step with the state at its highest known moment.
 * @param {Table} steps
 * @param {Table} samples
 * @param {Table | null} [before] the answer for the same table when it had fewer rows: it grows
 * @returns {Table}
 */
export function highMoments(steps, samples, before = null) {
  const rows = steps.x.length;
  const start = before ? Math.min(before.columns[MOMENT].length, lowerBound(steps.t, (steps.t[rows - 1] ?? 0) - SETTLED_S)) : 0;
  /** @type {Record<string, number[]>} */
  const columns = before ? before.columns : { [HELD]: steps.columns[fields.ALLOCATED] ?? [], [OPTIMIZER_BEFORE]: [] };
  for (const name of KEPT) if (steps.columns[name]) columns[name] = steps.columns[name];
  const state_before = columns[OPTIMIZER_BEFORE];
  for (const name of STATE) columns[name] ??= new Array(rows);
  let from = start > 0 ? lowerBound(samples.x, steps.t[start - 1] + 1e-9) : 0;
  for (let i = start; i < rows; i++) {
    const to = lowerBound(samples.x, steps.t[i] + 1e-9);
    const sample = highestSample(samples, reachesInto(samples, from - 1, i > 0 ? steps.t[i - 1] : -Infinity) ? from - 1 : from, to);
    from = to;
    const state = highestState(steps, i, samples, sample);
    for (const name of STATE) columns[name][i] = state[name] ?? NaN;
    state_before[i] = beginsLife(steps, i) ? NaN : (steps.columns[fields.OPTIMIZER_STATE]?.[i - 1] ?? NaN);
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
  const exact = exactPeak(steps, i, end);
  if (exact) return exact;
  const seen = sample < 0 ? -Infinity : samples.columns[fields.ALLOCATED][sample];
  const peak = movedPeak(steps, i, fields.ALLOCATED_PEAK);
  const at_end = known(end[fields.ALLOCATED]) ? end[fields.ALLOCATED] : -Infinity;
  if (peak > at_end && peak > seen) return peakState(steps, i, peak, end);
  return withReservedPeak(seen > at_end ? sampleState(samples, sample, end) : end, movedPeak(steps, i, fields.RESERVED_PEAK));
}

/** How the cache was cut is known of the moment of the look only. */
const NO_LOOK = Object.fromEntries(CACHE.map((name) => [name, NaN]));

/**
 * The highest moment of a step whose peaks were counted from its begin.
 * @param {Table} steps
 * @param {number} i
 * @param {Record<string, number>} end
 * @returns {Record<string, number> | null}
 */
function exactPeak(steps, i, end) {
  const peak = steps.columns[fields.PEAK_ALLOCATED]?.[i];
  if (!known(peak)) return null;
  const reserved = steps.columns[fields.PEAK_RESERVED]?.[i];
  const state = withReservedPeak(end, known(reserved) ? reserved : -Infinity);
  const active = steps.columns[fields.PEAK_ACTIVE]?.[i];
  return { ...state, ...NO_LOOK, [fields.ALLOCATED]: peak, [fields.ACTIVE]: known(active) ? active : peak, [fields.INACTIVE_SPLIT]: NaN, [MOMENT]: PEAK, [AT_MOST]: heldStill(steps, i) ? 0 : 1 };
}

/**
 * Whether reserved was the same all through a step: nothing was taken from the device since the row
 * before, which may be that of an earlier step, and the end is as high as the highest moment.
 * @param {Table} steps
 * @param {number} i
 */
function heldStill(steps, i) {
  const taken = steps.columns[fields.DEVICE_ALLOCATIONS];
  return !beginsLife(steps, i) && known(taken?.[i]) && taken[i] === taken[i - 1] && steps.columns[fields.RESERVED]?.[i] === steps.columns[fields.PEAK_RESERVED]?.[i];
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
    [fields.DEVICE_FREE]: Math.max(0, state[fields.DEVICE_FREE] - rise),
    ...NO_LOOK,
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
  state[MOMENT] = END;
  const before = indexAt(samples.x, steps.t[i]);
  const sample = before < 0 ? 0 : before;
  takeLook(state, samples, sample);
  if (known(state[fields.DEVICE_USED])) return withSize(state, samples, sample);
  const reserved = samples.columns[fields.RESERVED]?.[sample];
  if (!known(reserved)) return state;
  const of = (/** @type {string} */ name) => samples.columns[name]?.[sample] ?? NaN;
  state[fields.DEVICE_USED] = state[fields.RESERVED] + Math.max(0, of(fields.DEVICE_USED) - reserved);
  state[fields.DEVICE_PROCESS] = state[fields.RESERVED] + Math.max(0, of(fields.DEVICE_PROCESS) - reserved);
  state[fields.DEVICE_OTHER] = of(fields.DEVICE_OTHER);
  state[fields.DEVICE_TOTAL] = of(fields.DEVICE_TOTAL);
  state[fields.DEVICE_FREE] = Math.max(0, of(fields.DEVICE_FREE) - (state[fields.RESERVED] - reserved));
  return state;
}

/**
 * Size of the device for a row that itself says what is used on it.
 * @param {Record<string, number>} state
 * @param {Table} samples
 * @param {number} sample
 */
function withSize(state, samples, sample) {
  const of = (/** @type {string} */ name) => samples.columns[name]?.[sample] ?? NaN;
  const since = state[fields.DEVICE_USED] - of(fields.DEVICE_USED);
  return { ...state, [fields.DEVICE_TOTAL]: of(fields.DEVICE_TOTAL), [fields.DEVICE_FREE]: Math.max(0, of(fields.DEVICE_FREE) - since) };
}

/**
 * How the cache is cut at the end of a step: the look at the segments before it or the one after it,
 * whichever adds up to what is free there.
 * @param {Record<string, number>} state
 * @param {Table} samples
 * @param {number} sample the last one before the end
 */
function takeLook(state, samples, sample) {
  const rest = state[fields.RESERVED] - state[fields.ACTIVE];
  const misses = (/** @type {number} */ i) => Math.abs(CACHE.reduce((sum, name) => sum + (samples.columns[name]?.[i] || 0), 0) - rest);
  const look = misses(sample + 1) < misses(sample) && sample + 1 < samples.x.length ? sample + 1 : sample;
  if (isRolledUp(samples, look)) return;
  for (const name of CACHE) state[name] = samples.columns[name]?.[look] ?? NaN;
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
  for (const name of STATE) state[name] = samples.columns[name]?.[sample] ?? NaN;
  state[MOMENT] = INSTANT;
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
  return { ...state, ...NO_LOOK, [fields.ALLOCATED]: peak, [fields.ACTIVE]: Math.max(peak, active), [fields.INACTIVE_SPLIT]: NaN, [MOMENT]: PEAK };
}
