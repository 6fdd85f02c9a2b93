// What part of a run the chart shows, and how the reader moves through it. Pure: every function
// takes a view and returns the next one.

import { xAtTime } from "./series.js";

/** @typedef {import("./series.js").Table} Table */
/** @typedef {"2m" | "10m" | "run" | "forecast"} Window */
/** What is shown where the reader chose nothing. @typedef {{y: "full" | "moving", window: Window}} Defaults */

/**
 * @typedef {object} MemoryView
 * @property {"composition" | "lines"} drawn
 * @property {"full" | "moving" | null} y whether the axis begins at 0 or just below what never changes; null: not chosen
 * @property {"step" | "time"} xKind
 * @property {Window | null} window what following shows; null: not chosen
 * @property {[number, number] | null} range null while following
 * @property {([number, number] | null)[]} before ranges to go back to, newest last
 * @property {number | null} pinned cursor that stays when the pointer leaves
 * @property {number | null} rank null for all ranks together
 * @property {number | null} device of the rank, beside the one that is watched in full: of that there are samples only
 */

const WINDOW_S = { "2m": 120, "10m": 600, run: Infinity, forecast: Infinity };
const MOST_BEFORE = 50;

/**
 * @param {URLSearchParams} query
 * @param {number} ranks
 * @returns {MemoryView}
 */
export function viewFromQuery(query, ranks) {
  const xKind = query.get("x") === "time" ? "time" : "step";
  const from = Number(query.get("from") ?? NaN);
  const to = Number(query.get("to") ?? NaN);
  const at = Number(query.get("at") ?? NaN);
  const window = query.get("window");
  const y = query.get("y");
  const rank = query.get("rank");
  const device = query.get("device");
  return {
    drawn: query.get("view") === "lines" ? "lines" : "composition",
    y: y === "moving" || y === "full" ? y : null,
    xKind,
    window: window !== null && window in WINDOW_S ? /** @type {Window} */ (window) : null,
    range: to > from ? [from, to] : null,
    before: [],
    pinned: Number.isFinite(at) ? at : null,
    rank: rank !== null && rank !== "all" && Number(rank) >= 0 ? Number(rank) : ranks > 1 ? null : 0,
    device: device !== null && /^\d+$/.test(device) ? Number(device) : null,
  };
}

/**
 * The query that brings the same view back.
 * @param {MemoryView} view
 * @param {number} ranks
 * @returns {Record<string, string | null>}
 */
export function queryFromView(view, ranks) {
  const digits = view.xKind === "step" ? 0 : 1;
  return {
    view: view.drawn === "lines" ? "lines" : null,
    y: view.y,
    x: view.xKind === "time" ? "time" : null,
    window: view.window,
    from: view.range ? view.range[0].toFixed(digits) : null,
    to: view.range ? view.range[1].toFixed(digits) : null,
    at: view.pinned === null ? null : view.pinned.toFixed(digits),
    rank: view.rank === null || (ranks <= 1 && view.rank === 0) ? null : String(view.rank),
    device: view.device === null ? null : String(view.device),
  };
}

/**
 * A view with nothing left open.
 * @param {MemoryView} view
 * @param {Defaults} defaults
 * @returns {MemoryView & Defaults}
 */
export function settled(view, defaults) {
  const window = view.window ?? defaults.window;
  // A forecast that is no more leaves the whole run.
  return { ...view, y: view.y ?? defaults.y, window: window === "forecast" && defaults.window !== "forecast" ? "run" : window };
}

/**
 * The range that is shown; rows as they are now decide where following ends.
 * @param {MemoryView} view
 * @param {Table} table
 * @param {number} [now_x] where the axis ends although rows end before (a run that fell silent)
 * @returns {[number, number]}
 */
export function shownRange(view, table, now_x = -Infinity) {
  if (view.range) return view.range;
  if (table.x.length === 0) return view.xKind === "step" ? [0, 10] : [0, 60];
  const last = table.x[table.x.length - 1];
  const end = Math.max(last, now_x);
  const first = table.x[0];
  const window_s = WINDOW_S[view.window ?? "10m"];
  if (window_s === Infinity) return widen(first, end, view.xKind);
  const start = view.xKind === "time" ? last - window_s : xAtTime(table, table.t[table.t.length - 1] - window_s);
  return widen(Math.max(first, start), end, view.xKind);
}

/**
 * @param {number} from
 * @param {number} to
 * @param {"step" | "time"} xKind
 * @returns {[number, number]}
 */
function widen(from, to, xKind) {
  const least = xKind === "step" ? 2 : 2;
  return to - from >= least ? [from, to] : [from, from + least];
}

/**
 * @param {MemoryView} view
 * @param {[number, number]} range
 * @param {{first: number, last: number}} bounds
 * @returns {MemoryView}
 */
export function zoomTo(view, range, bounds) {
  const least = view.xKind === "step" ? 1 : 0.5;
  const middle = (range[0] + range[1]) / 2;
  const half = Math.max(least, range[1] - range[0]) / 2;
  let from = Math.max(bounds.first, middle - half);
  let to = Math.min(Math.max(bounds.last, bounds.first + least), middle + half);
  if (to - from < least) {
    from = Math.max(bounds.first, to - least);
    to = from + least;
  }
  return { ...view, range: [from, to], before: [...view.before, view.range].slice(-MOST_BEFORE) };
}

/**
 * Around a point, which stays where it is. Repeated turns of the wheel are one step back.
 * @param {MemoryView} view
 * @param {[number, number]} shown
 * @param {number} factor below 1 zooms in
 * @param {number} at
 * @param {{first: number, last: number}} bounds
 */
export function zoomAround(view, shown, factor, at, bounds) {
  const next = zoomTo(view, [at - (at - shown[0]) * factor, at + (shown[1] - at) * factor], bounds);
  return view.range === null ? next : { ...next, before: view.before };
}

/**
 * @param {MemoryView} view
 * @param {[number, number]} shown
 * @param {number} delta
 * @param {{first: number, last: number}} bounds
 * @returns {MemoryView}
 */
export function panBy(view, shown, delta, bounds) {
  const width = shown[1] - shown[0];
  const from = Math.max(Math.min(bounds.first, shown[0]), Math.min(shown[0] + delta, Math.max(bounds.last, shown[1]) - width));
  return { ...view, range: [from, from + width], before: view.range === null ? [...view.before, null] : view.before };
}

/**
 * @param {MemoryView} view
 * @returns {MemoryView}
 */
export function back(view) {
  if (view.before.length === 0) return { ...view, range: null };
  return { ...view, range: view.before[view.before.length - 1], before: view.before.slice(0, -1) };
}

/**
 * @param {MemoryView} view
 * @returns {MemoryView}
 */
export function follow(view) {
  return { ...view, range: null, before: [], pinned: null };
}

/**
 * The other axis: a range of steps becomes the same stretch of time and back.
 * @param {MemoryView} view
 * @param {"step" | "time"} xKind
 * @param {Table} steps rows that know both
 * @returns {MemoryView}
 */
export function changeAxis(view, xKind, steps) {
  if (view.xKind === xKind) return view;
  const convert = (/** @type {number} */ x) => (xKind === "step" ? xAtTime(steps, x) : timeAtX(steps, x));
  const range = view.range && steps.x.length > 1 ? /** @type {[number, number]} */ ([convert(view.range[0]), convert(view.range[1])]) : null;
  return { ...view, xKind, range: range && range[1] > range[0] ? range : null, before: [], pinned: view.pinned === null || steps.x.length < 2 ? null : convert(view.pinned) };
}

/**
 * @param {Table} table
 * @param {number} x
 */
export function timeAtX(table, x) {
  return xAtTime({ x: table.t, t: table.x, columns: {}, binWidth: 0 }, x);
}
