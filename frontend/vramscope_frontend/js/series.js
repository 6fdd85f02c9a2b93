// Tables of rows in time or step order, as plain columns. Pure: no fetching, no drawing, no clock.

import { DEVICE_FREE, STEP } from "./fields.js";
import { known } from "./format.js";

/** @typedef {import("./messages.js").Columns} Columns */
/** @typedef {import("./messages.js").SeriesPayload} SeriesPayload */
/** @typedef {import("./messages.js").StepsPayload} StepsPayload */

/**
 * `x` rises strictly. NaN in a column means "not known". `t` is the time of the row in seconds
 * since the run started, which is also `x` where rows are samples.
 * @typedef {object} Table
 * @property {number[]} x
 * @property {number[]} t
 * @property {Record<string, number[]>} columns
 * @property {number} binWidth  0 for rows that were measured as they are, else what one row spans
 */

/**
 * @param {string[]} fields
 * @returns {Table}
 */
export function emptyTable(fields) {
  return { x: [], t: [], columns: Object.fromEntries(fields.map((name) => [name, []])), binWidth: 0 };
}

/**
 * Rows at or before the last row of the table are repetitions (a resend, a race between a fetch
 * and the live feed) and are left out. Beyond `capacity` the oldest rows go.
 * @param {Table} table
 * @param {number[]} x
 * @param {number[]} t
 * @param {Record<string, (number | null)[] | undefined>} columns
 * @param {number} capacity
 * @returns {number} rows added
 */
export function appendRows(table, x, t, columns, capacity) {
  let last = table.x.length ? table.x[table.x.length - 1] : -Infinity;
  let added = 0;
  for (let i = 0; i < x.length; i++) {
    if (x[i] <= last) continue;
    last = x[i];
    table.x.push(last);
    table.t.push(t[i]);
    for (const name in table.columns) table.columns[name].push(columns[name]?.[i] ?? NaN);
    added++;
  }
  // In large bites: dropping one row at a time would move every column for each message.
  if (table.x.length > capacity * 1.25) dropBefore(table, table.x.length - capacity);
  return added;
}

/**
 * @param {Table} table
 * @param {number} rows
 */
function dropBefore(table, rows) {
  table.x.splice(0, rows);
  table.t.splice(0, rows);
  for (const name in table.columns) table.columns[name].splice(0, rows);
}

/** Column of step rows: which life of the rank they are of. */
export const LIFE = "life_of_row";

/**
 * Columns of a table of steps: what is asked for, the number of each step, and whose it is.
 * @param {string[]} fields
 */
export const stepColumns = (fields) => [...fields, STEP, LIFE];

/**
 * `x` goes on through all lives of a rank, whatever they number their steps.
 * @param {StepsPayload} payload
 * @param {string[]} fields
 * @param {number} origin_ns
 * @param {number} points that were asked for: more steps than that came as one row a bin
 * @returns {Table}
 */
export function tableFromSteps(payload, fields, origin_ns, points) {
  const table = emptyTable(stepColumns(fields));
  const lives = payload.life ?? payload.step.map(() => 0);
  const xs = payload.step.map((step, i) => (known(step) ? step + (payload.step_offsets?.[lives[i]] ?? 0) : -Infinity));
  appendRows(table, xs, payload.time_ns.map((ns) => (ns - origin_ns) / 1e9), { ...payload.columns, [STEP]: payload.step, [LIFE]: lives }, Infinity);
  const rows = table.x.length;
  const span = rows > 1 ? table.x[rows - 1] - table.x[0] + 1 : rows;
  table.binWidth = span > points ? span / rows : 0;
  return table;
}

/** Seconds that a row of samples stands for: the highest of each counter in them, no state that did exist. */
export const SPAN = "span_s";

/**
 * True where a row holds the highest of each counter over a stretch, false for one that was measured.
 * @param {Table} table
 * @param {number} index
 */
export function isRolledUp(table, index) {
  return (table.columns[SPAN]?.[index] || 0) > 0;
}

/**
 * One row per bin, with the highest value of each field in it (of what is free, the lowest).
 * @param {SeriesPayload} payload
 * @param {string[]} fields
 * @param {number} origin_ns
 * @returns {Table}
 */
export function tableFromSeries(payload, fields, origin_ns) {
  const table = emptyTable(fields);
  const t = payload.time_ns.map((ns) => (ns - origin_ns) / 1e9);
  /** @type {Columns} */
  const columns = {};
  for (const name of fields) {
    const bins = payload.columns[name];
    // The highest use of a bin is where least is free.
    if (bins) columns[name] = name === DEVICE_FREE ? bins.min : bins.max;
  }
  appendRows(table, t, t, columns, Infinity);
  table.binWidth = payload.resolution_ms / 1000;
  table.columns[SPAN] = table.x.map(() => table.binWidth);
  return table;
}

/**
 * First index whose value is not below `x`.
 * @param {number[]} xs
 * @param {number} x
 */
export function lowerBound(xs, x) {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Last index whose value is not above `x`, -1 if there is none: the row in force at `x`.
 * @param {number[]} xs
 * @param {number} x
 */
export function indexAt(xs, x) {
  const index = lowerBound(xs, x);
  return index < xs.length && xs[index] === x ? index : index - 1;
}

/**
 * Put a finer part in the place that it covers.
 * @param {Table} base
 * @param {Table} part
 * @returns {Table}
 */
export function overlay(base, part) {
  if (part.x.length === 0) return base;
  if (base.x.length === 0) return part;
  const before = lowerBound(base.x, part.x[0]);
  const after = lowerBound(base.x, part.x[part.x.length - 1] + Number.EPSILON);
  const from = base.x[after] === part.x[part.x.length - 1] ? after + 1 : after;
  /** @param {number[]} whole @param {number[]} middle */
  const join = (whole, middle) => [...whole.slice(0, before), ...middle, ...whole.slice(from)];
  /** @type {Table} */
  const joined = { x: join(base.x, part.x), t: join(base.t, part.t), columns: {}, binWidth: base.binWidth };
  for (const name in base.columns) joined.columns[name] = join(base.columns[name], part.columns[name] ?? part.x.map(() => NaN));
  return joined;
}

/**
 * Indices of the rows between `x0` and `x1`, with one more on the left: a step function needs the
 * value that was in force when the range begins.
 * @param {Table} table
 * @param {number} x0
 * @param {number} x1
 * @returns {[number, number]} half open
 */
export function rowsBetween(table, x0, x1) {
  const from = Math.max(0, lowerBound(table.x, x0) - 1);
  const to = indexAt(table.x, x1) + 1;
  return [from, Math.max(from, to)];
}

/**
 * @param {Table} table
 * @param {number[]} indices
 * @returns {Table}
 */
export function takeRows(table, indices) {
  /** @param {number[]} column */
  const take = (column) => indices.map((index) => column[index]);
  /** @type {Table} */
  const taken = { x: take(table.x), t: take(table.t), columns: {}, binWidth: table.binWidth };
  for (const name in table.columns) taken.columns[name] = take(table.columns[name]);
  return taken;
}

/**
 * One row as known numbers; absent means not known.
 * @param {Table} table
 * @param {number} index
 * @returns {Record<string, number>}
 */
export function rowAt(table, index) {
  /** @type {Record<string, number>} */
  const row = {};
  for (const name in table.columns) {
    const value = table.columns[name][index];
    if (known(value)) row[name] = value;
  }
  return row;
}

/**
 * x at which the rows have reached time `t` (seconds), by the rows around it.
 * @param {Table} table
 * @param {number} t
 */
export function xAtTime(table, t) {
  if (table.x.length === 0) return NaN;
  const after = Math.min(table.x.length - 1, lowerBound(table.t, t));
  const before = Math.max(0, after - 1);
  const span_t = table.t[after] - table.t[before];
  if (span_t <= 0) return table.x[after];
  const share = Math.min(1, Math.max(0, (t - table.t[before]) / span_t));
  return table.x[before] + share * (table.x[after] - table.x[before]);
}

/**
 * Highest value in a column and the row that has it.
 * @param {number[] | undefined} column
 * @returns {{index: number, value: number} | null}
 */
export function highest(column) {
  let index = -1;
  if (column) {
    for (let i = 0; i < column.length; i++) if (known(column[i]) && (index < 0 || column[i] > column[index])) index = i;
  }
  return index < 0 || !column ? null : { index, value: column[index] };
}

/**
 * Last known value in a column.
 * @param {number[] | undefined} column
 */
export function lastKnown(column) {
  if (column) for (let i = column.length - 1; i >= 0; i--) if (known(column[i])) return column[i];
  return null;
}
