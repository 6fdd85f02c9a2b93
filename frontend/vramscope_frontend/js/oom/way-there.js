// The way to running out of memory: the peak of each step before it, and when the cache was flushed. Pure.

import { ALLOCATED, PEAK_ALLOCATED, PEAK_RESERVED, RESERVED, RETRIES } from "../fields.js";
import { known } from "../format.js";

/** @typedef {import("./messages.js").OomReport} OomReport */
/** @typedef {import("./messages.js").ReportRows} ReportRows */
/**
 * @typedef {object} Way
 * @property {boolean} bySteps else over seconds before the end
 * @property {number[]} x
 * @property {number[]} allocated bytes; NaN is not known
 * @property {number[]} reserved
 * @property {{x: number[], y: number[]}} retries
 * @property {number} end where it ran out
 * @property {number} highest
 */

const PEAKS = { allocated: [PEAK_ALLOCATED, ALLOCATED], reserved: [PEAK_RESERVED, RESERVED] };
/** Fewer steps are no way: the last minute of samples shows more. */
const LEAST_STEPS = 2;

/**
 * @param {OomReport} report
 * @returns {Way | null}
 */
export function wayThere(report) {
  const { steps, samples } = report;
  const bySteps = (steps?.time_ns.length ?? 0) >= LEAST_STEPS && steps?.number !== null;
  const rows = bySteps ? steps : samples;
  if (!rows || rows.time_ns.length === 0) return null;
  const x = bySteps && rows.number ? rows.number : rows.time_ns.map((ns) => (ns - report.time_ns) / 1e9);
  const allocated = columnOf(rows, PEAKS.allocated);
  const reserved = columnOf(rows, PEAKS.reserved);
  const end = bySteps ? Math.max((x.at(-1) ?? 0) + 1, report.step ?? 0) : 0;
  return { bySteps, x, allocated, reserved, retries: retriesOf(rows, x, report), end, highest: Math.max(0, ...[...allocated, ...reserved].filter(Number.isFinite)) };
}

/**
 * The first column that is known.
 * @param {ReportRows} rows
 * @param {string[]} names
 */
function columnOf(rows, names) {
  const name = names.find((one) => rows.columns[one]?.some(known)) ?? names[0];
  return rows.time_ns.map((_, i) => rows.columns[name]?.[i] ?? NaN);
}

/**
 * How often the cache was flushed in each step; those of the last one are in the counters only.
 * @param {ReportRows} rows
 * @param {number[]} x
 * @param {OomReport} report
 */
function retriesOf(rows, x, report) {
  const totals = rows.columns[RETRIES] ?? [];
  /** @type {Way["retries"]} */
  const retries = { x: [], y: [] };
  let before = totals.find(known) ?? NaN;
  totals.forEach((total, i) => {
    if (!known(total)) return;
    if (total > before) {
      retries.x.push(x[i]);
      retries.y.push(total - before);
    }
    before = total;
  });
  const last = report.counters?.[RETRIES];
  if (known(last) && known(before) && last > before && x.length) {
    retries.x.push((x.at(-1) ?? 0) + (rows === report.steps ? 1 : 0));
    retries.y.push(last - before);
  }
  return retries;
}
