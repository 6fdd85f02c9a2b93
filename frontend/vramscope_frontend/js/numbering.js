// A rank that is restarted counts its steps anew. The axis of steps goes on through all lives of the
// rank; what it is labelled with are the numbers of each life. Pure.

import { STEP } from "./fields.js";
import { known } from "./format.js";
import { LIFE, lowerBound } from "./series.js";

/** @typedef {import("./series.js").Table} Table */
/** From `x` on, rows are of `life`, and `x - offset` is the number of their step. @typedef {{x: number, life: number, offset: number}} Stretch */
/** Steps of one life to ask the server for; null is open. @typedef {{life: number, start: number | null, end: number | null}} Piece */

/**
 * The lives that rows are of, in order. Rows that do not say it are one life that begins at 0.
 * @param {Table} table
 * @returns {Stretch[]}
 */
export function stretchesOf(table) {
  const lives = table.columns[LIFE];
  const numbers = table.columns[STEP];
  if (!lives || !numbers || table.x.length === 0) return [];
  /** @type {Stretch[]} */
  const found = [];
  for (let i = 0; i < lives.length; i++) {
    // Of thinned rows the first of a life may be missing: it begins where the one before it ends.
    if (known(lives[i]) && lives[i] !== found.at(-1)?.life) found.push({ x: i === 0 ? table.x[0] : table.x[i - 1] + 1, life: lives[i], offset: table.x[i] - numbers[i] });
  }
  return found;
}

/**
 * @param {Stretch[]} stretches
 * @param {number} x
 */
function stretchAt(stretches, x) {
  let at = stretches[0];
  for (const one of stretches) if (one.x <= x) at = one;
  return at;
}

/**
 * Number of the step at a place on the axis.
 * @param {Stretch[]} stretches
 * @param {number} x
 */
export function numberAt(stretches, x) {
  return x - (stretchAt(stretches, x)?.offset ?? 0);
}

/**
 * Number of the step of a row.
 * @param {Table} table
 * @param {number} index
 */
export function numberOf(table, index) {
  const number = table.columns[STEP]?.[index];
  return known(number) ? number : table.x[index];
}

/**
 * Where a step lies; of several with that number the newest.
 * @param {Stretch[]} stretches
 * @param {number} number
 * @param {number} last end of the axis
 */
export function xOfNumber(stretches, number, last) {
  for (let i = stretches.length - 1; i >= 0; i--) {
    const x = number + stretches[i].offset;
    if (x >= stretches[i].x && x <= (i + 1 < stretches.length ? stretches[i + 1].x - 1 : last)) return x;
  }
  return number + (stretches.at(-1)?.offset ?? 0);
}

/**
 * Where a step lies that something happened at: of several with that number the one that ended
 * nearest to that time.
 * @param {Table} steps
 * @param {number} number
 * @param {number} t seconds since the run started
 */
export function xOfMoment(steps, number, t) {
  const stretches = stretchesOf(steps);
  if (stretches.length < 2) return number + (stretches[0]?.offset ?? 0);
  const index = Math.max(0, lowerBound(steps.t, t) - 1);
  return number + stretchAt(stretches, steps.x[index]).offset;
}

/**
 * Rows of the newest life only: a process knows nothing of the counters of the one before it.
 * @param {Table} table
 * @returns {number} index of its first row
 */
export function newestLifeFrom(table) {
  const lives = table.columns[LIFE];
  if (!lives) return 0;
  let from = lives.length;
  while (from > 0 && lives[from - 1] === lives[lives.length - 1]) from--;
  return from === lives.length ? 0 : from;
}

/**
 * @param {Table} table
 * @param {number} index
 */
export function beginsLife(table, index) {
  const lives = table.columns[LIFE];
  return index === 0 || (lives !== undefined && lives[index] !== lives[index - 1]);
}

/**
 * What to ask for to get a range of the axis.
 * @param {Stretch[]} stretches
 * @param {number | null} x0
 * @param {number | null} x1
 * @returns {Piece[]}
 */
export function piecesOf(stretches, x0, x1) {
  return stretches.flatMap(({ x, life, offset }, i) => {
    const after = stretches[i + 1]?.x ?? Infinity;
    if ((x0 ?? -Infinity) >= after || ((x1 ?? Infinity) < x && i > 0)) return [];
    const end = x1 !== null && x1 < after ? Math.ceil(x1) - offset : null;
    return end !== null && end < 0 ? [] : [{ life, start: x0 !== null && x0 > x ? Math.max(0, Math.floor(x0) - offset) : null, end }];
  });
}
