// Where rows are missing. A filled area would bridge a hole, so holes are drawn on top.

/** @typedef {import("./series.js").Table} Table */
/** @typedef {{x0: number, x1: number, missing: number | null}} Gap */

const LEAST_SECONDS = 3;

/**
 * Steps that are missing between neighbouring rows: known exactly where rows are not downsampled.
 * @param {Table} table
 * @returns {Gap[]}
 */
export function missingSteps(table) {
  const least = Math.max(2, 4 * table.binWidth);
  /** @type {Gap[]} */
  const gaps = [];
  for (let i = 1; i < table.x.length; i++) {
    const hole = table.x[i] - table.x[i - 1];
    if (hole >= least) gaps.push({ x0: table.x[i - 1], x1: table.x[i], missing: table.binWidth === 0 ? hole - 1 : null });
  }
  return gaps;
}

/**
 * Silence between neighbouring samples.
 * @param {Table} table
 * @returns {Gap[]}
 */
export function silences(table) {
  const least_s = Math.max(LEAST_SECONDS, 4 * table.binWidth, 6 * usualSpacing(table.x));
  /** @type {Gap[]} */
  const gaps = [];
  for (let i = 1; i < table.x.length; i++) {
    if (table.x[i] - table.x[i - 1] >= least_s) gaps.push({ x0: table.x[i - 1], x1: table.x[i], missing: null });
  }
  return gaps;
}

/**
 * Median distance of a few hundred neighbours.
 * @param {number[]} xs
 */
function usualSpacing(xs) {
  const every = Math.max(1, Math.floor(xs.length / 300));
  const spacings = [];
  for (let i = 1; i < xs.length; i += every) spacings.push(xs[i] - xs[i - 1]);
  spacings.sort((a, b) => a - b);
  return spacings.length ? spacings[spacings.length >> 1] : 0;
}
