// The highest use of a run, from exact step peaks where there are any, else from samples. Pure.

import * as fields from "./fields.js";
import { known } from "./format.js";
import { indexAt, lastKnown } from "./series.js";

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
  const allocated = steps.columns[fields.ALLOCATED_PEAK] ?? [];
  const by_height = highestRow(steps, (i) => usedAtPeakOf(steps, i, outside) + (allocated[i] || 0) * 1e-6);
  const by_step = by_height && { index: by_height.index, used: usedAtPeakOf(steps, by_height.index, outside) };
  const by_sample = highestRow(samples, (i) => higher(samples.columns[fields.DEVICE_USED]?.[i], samples.columns[fields.RESERVED]?.[i]));
  if (!by_step && !by_sample) return null;
  if (by_step && (!by_sample || by_step.used >= by_sample.used)) {
    return { used: by_step.used, usedKnown: known(steps.columns[fields.DEVICE_USED]?.[by_step.index]) || outside !== null, step: steps.x[by_step.index] };
  }
  const index = by_sample?.index ?? 0;
  const step = samples.columns[fields.STEP]?.[index];
  return { used: by_sample?.used ?? 0, usedKnown: known(samples.columns[fields.DEVICE_USED]?.[index]), step: known(step) ? step : null };
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
 * Bytes used on the device at the peak of a step row.
 * @param {Table} steps
 * @param {number} i
 * @param {number | null} outside bytes outside of PyTorch where the row itself does not know
 */
export function usedAtPeakOf(steps, i, outside) {
  const reserved = steps.columns[fields.RESERVED]?.[i];
  const peak = higher(steps.columns[fields.RESERVED_PEAK]?.[i], reserved);
  const used = steps.columns[fields.DEVICE_USED]?.[i];
  if (known(used)) return used + Math.max(0, peak - (known(reserved) ? reserved : peak));
  return peak + (outside ?? 0);
}

/**
 * What the newest sample says is used outside of PyTorch's segments; null if nothing says it.
 * @param {Table} samples
 */
export function outsideOf(samples) {
  const used = lastKnown(samples.columns[fields.DEVICE_USED]);
  const reserved = lastKnown(samples.columns[fields.RESERVED]);
  return known(used) && known(reserved) ? Math.max(0, used - reserved) : null;
}

/**
 * Step rows that carry no device data take what lies outside of PyTorch from the sample before them.
 * @param {Table} steps
 * @param {Table} samples
 * @returns {Table}
 */
export function withDevice(steps, samples) {
  const own = steps.columns[fields.DEVICE_USED];
  if (!own || own.some(known) || !samples.columns[fields.DEVICE_USED]?.some(known)) return steps;
  /** @type {Record<string, number[]>} */
  const columns = { ...steps.columns };
  const reserved = steps.columns[fields.RESERVED];
  const at = steps.t.map((t) => indexAt(samples.x, t));
  for (const name of [fields.DEVICE_USED, fields.DEVICE_PROCESS]) {
    const values = samples.columns[name];
    columns[name] = at.map((sample, i) => (sample < 0 ? NaN : reserved[i] + values[sample] - samples.columns[fields.RESERVED][sample]));
  }
  columns[fields.DEVICE_OTHER] = at.map((sample) => (sample < 0 ? NaN : samples.columns[fields.DEVICE_OTHER][sample]));
  return { ...steps, columns };
}

/**
 * @param {number | undefined} a
 * @param {number | undefined} b
 */
function higher(a, b) {
  if (!known(a)) return known(b) ? b : NaN;
  return known(b) ? Math.max(a, b) : a;
}
