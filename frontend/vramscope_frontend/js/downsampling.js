// How many rows a picture needs, and which ones. Peaks are never lost and nothing is averaged.

import { rowsBetween } from "./series.js";

/** @typedef {import("./series.js").Table} Table */

/** A redraw of stacked areas costs 37 ms at 1,000 points a trace and 77 at 2,000. */
export const LIVE_POINTS = 1000;
const MOST_POINTS = 2000;

/**
 * Points to ask the server for: one a pixel column is all that can be seen.
 * @param {number} width_px
 */
export function pointsWanted(width_px) {
  return Math.max(100, Math.min(MOST_POINTS, Math.round(width_px)));
}

/**
 * The part of a range that deserves a finer answer from the server than the rows at hand, or null.
 * `recent` rows are as measured; `detail` is what was fetched for a range before.
 * @param {{coarseBinWidth: number, detail: {x0: number, x1: number, binWidth: number} | null, recentFrom: number}} at_hand
 * @param {number} x0
 * @param {number} x1
 * @param {number} width_px
 * @returns {{x0: number, x1: number} | null}
 */
export function rangeToRefine({ coarseBinWidth, detail, recentFrom }, x0, x1, width_px) {
  const end = Math.min(x1, recentFrom);
  if (!(end > x0)) return null;
  const covered = detail !== null && detail.x0 <= x0 && detail.x1 >= end;
  // Asked for this very stretch before: finer than that answer the server has nothing.
  if (covered && detail.x1 - detail.x0 < 1.6 * (end - x0)) return null;
  const binWidth = covered ? detail.binWidth : coarseBinWidth;
  // A fifth of tolerance: servers answer in the bin widths that they keep, not in any.
  const wanted = (1.2 * (x1 - x0)) / pointsWanted(width_px);
  return binWidth > wanted ? { x0, x1: end } : null;
}

/**
 * Rows to draw for a range: per bin the row with the highest `first` and the one with the highest
 * `second`, in order, so that every composition drawn did exist.
 * @param {Table} table
 * @param {number} x0
 * @param {number} x1
 * @param {string} first
 * @param {string} second
 * @param {number} [points]
 * @returns {number[]} indices
 */
export function pickRows(table, x0, x1, first, second, points = LIVE_POINTS) {
  const [from, to] = rowsBetween(table, x0, x1);
  const rows = to - from;
  if (rows <= points) return Array.from({ length: rows }, (_, i) => from + i);
  const bins = Math.floor(points / 2);
  const one = table.columns[first] ?? [];
  const two = table.columns[second] ?? [];
  // Bins are fixed in x, not in row number: a picture that slides would flicker otherwise.
  const width = niceWidth((x1 - x0) / bins);
  /** @type {number[]} */
  const picked = [from];
  let start = from + 1;
  while (start < to) {
    const bin = Math.floor(table.x[start] / width);
    let best = start;
    let other = start;
    let end = start;
    for (; end < to && Math.floor(table.x[end] / width) === bin; end++) {
      if (one[end] > one[best] || Number.isNaN(one[best])) best = end;
      if (two[end] > two[other] || Number.isNaN(two[other])) other = end;
    }
    picked.push(Math.min(best, other));
    if (best !== other) picked.push(Math.max(best, other));
    start = end;
  }
  if (picked[picked.length - 1] !== to - 1) picked.push(to - 1);
  return picked;
}

/**
 * The next of 1, 2, 4, 5, 8 times a power of ten that is not below `width`.
 * @param {number} width
 */
function niceWidth(width) {
  const power = 10 ** Math.floor(Math.log10(width));
  for (const factor of [1, 2, 4, 5, 8]) if (factor * power >= width) return factor * power;
  return 10 * power;
}
