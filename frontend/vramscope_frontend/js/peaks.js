// The highest use of a run: the exact peak of each step, or PyTorch's own, which misses nothing since
// its last reset; and the highest sample of the device. Pure.

import * as fields from "./fields.js";
import { known, MIB } from "./format.js";
import { beginsLife, newestLifeFrom, numberOf } from "./numbering.js";

/** @typedef {import("./series.js").Table} Table */
/** @typedef {import("./verdict.js").Peak} Peak */

/**
 * @param {Table} steps
 * @param {Table} samples
 * @returns {Peak | null}
 */
export function peakOf(steps, samples) {
  const outside = outsideOf(samples);
  // A cache that stays makes many rows equal: of those the one with most in tensors is the peak.
  const by_height = highestRow(steps, (i) => heightOf(usedAtPeakOf(steps, i, outside), peakIn(steps, i, fields.PEAK_ALLOCATED, fields.ALLOCATED_PEAK)));
  const by_step = by_height && { index: by_height.index, used: usedAtPeakOf(steps, by_height.index, outside) };
  const by_sample = highestRow(samples, (i) => higher(takenOf(samples, i), samples.columns[fields.RESERVED]?.[i]));
  if (!by_step && !by_sample) return null;
  if (by_step && (!by_sample || by_step.used >= by_sample.used)) {
    return { used: by_step.used, usedKnown: known(steps.columns[fields.DEVICE_USED]?.[by_step.index]) || outside !== null, step: by_step.index > 0 || numberOf(steps, 0) <= 1 ? numberOf(steps, by_step.index) : null, ...(by_step.index < newestLifeFrom(steps) ? { isEarlier: true } : {}) };
  }
  const index = by_sample?.index ?? 0;
  const step = samples.columns[fields.STEP]?.[index];
  return { used: by_sample?.used ?? 0, usedKnown: known(samples.columns[fields.DEVICE_USED]?.[index]), step: known(step) ? step : null };
}

/**
 * A height that ranks moments: use of the device first, then bytes in tensors. In whole MiB, so that
 * a byte of rounding does not move the peak from one step to another.
 * @param {number} used
 * @param {number | undefined} allocated
 */
export function heightOf(used, allocated) {
  return Math.round(used / MIB) + Math.round((known(allocated) ? allocated : 0) / MIB) * 1e-9;
}

/**
 * Index of the row whose highest moment was the highest.
 * @param {Table} table
 * @param {(index: number) => number} valueOf
 * @param {number} [from]
 * @param {number} [to]
 */
export function highestRow(table, valueOf, from = 0, to = table.x.length) {
  let index = -1;
  let used = -Infinity;
  for (let i = from; i < to; i++) {
    const value = valueOf(i);
    if (value > used) {
      used = value;
      index = i;
    }
  }
  return index < 0 ? null : { index, used };
}

/**
 * The highest value of a step: its own where peaks are counted by step, else that since the last
 * reset. The first row of a process also tells what was reached before it was watched.
 * @param {Table} steps
 * @param {number} i
 * @param {string} ofStep
 * @param {string} sinceReset
 */
export function peakIn(steps, i, ofStep, sinceReset) {
  const exact = steps.columns[ofStep]?.[i];
  const before = steps.columns[sinceReset]?.[i];
  if (!known(exact)) return known(before) ? before : NaN;
  return beginsLife(steps, i) ? higher(exact, before) : exact;
}

/**
 * What is not free on the device, the driver's own part included.
 * @param {Table} samples
 * @param {number} i
 */
export function takenOf({ columns }, i) {
  const used = columns[fields.DEVICE_USED]?.[i];
  const taken = (columns[fields.DEVICE_TOTAL]?.[i] ?? NaN) - (columns[fields.DEVICE_FREE]?.[i] ?? NaN);
  return known(used) && known(taken) ? Math.max(used, taken) : (used ?? NaN);
}

/**
 * Bytes used on the device when PyTorch's peak was reached that a step row carries.
 * @param {Table} steps
 * @param {number} i
 * @param {number | null} outside bytes outside of PyTorch where the row itself does not know
 */
export function usedAtPeakOf(steps, i, outside) {
  const reserved = steps.columns[fields.RESERVED]?.[i];
  const peak = higher(peakIn(steps, i, fields.PEAK_RESERVED, fields.RESERVED_PEAK), reserved);
  const used = steps.columns[fields.DEVICE_USED]?.[i];
  if (known(used)) return used + Math.max(0, peak - (known(reserved) ? reserved : peak));
  return peak + (outside ?? 0);
}

/**
 * What the newest sample says is used outside of PyTorch's segments; null if nothing says it.
 * @param {Table} samples
 */
export function outsideOf(samples) {
  const reserved = samples.columns[fields.RESERVED] ?? [];
  for (let i = samples.x.length - 1; i >= 0; i--) {
    const taken = takenOf(samples, i);
    if (known(taken) && known(reserved[i])) return Math.max(0, taken - reserved[i]);
  }
  return null;
}

/**
 * @param {number | undefined} a
 * @param {number | undefined} b
 */
function higher(a, b) {
  if (!known(a)) return known(b) ? b : NaN;
  return known(b) ? Math.max(a, b) : a;
}
