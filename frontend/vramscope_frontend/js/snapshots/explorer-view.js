// What of a recording is shown, and its place in the address: a link shows exactly this. Pure.

/** @typedef {"stack" | "line" | "category" | "size"} By */

/**
 * @typedef {object} ExplorerView
 * @property {By} by
 * @property {[number, number] | null} range null for what is shown at first
 * @property {number | null} at moment of the cursor; null for the highest
 * @property {boolean} fold
 * @property {"icicle" | "table"} drawn
 * @property {number | null} device
 */

const BYS = ["stack", "line", "category", "size"];

/**
 * @param {URLSearchParams} query
 * @returns {ExplorerView}
 */
export function explorerFromQuery(query) {
  const by = query.get("by") ?? "stack";
  const [from, to] = [numberOf(query, "from"), numberOf(query, "to")];
  return {
    by: /** @type {By} */ (BYS.includes(by) ? by : "stack"),
    range: from !== null && to !== null && to > from ? [from, to] : null,
    at: numberOf(query, "at"),
    fold: query.get("fold") !== "0",
    drawn: query.get("drawn") === "table" ? "table" : "icicle",
    device: numberOf(query, "device"),
  };
}

/**
 * @param {ExplorerView} view
 * @returns {Record<string, string | null>}
 */
export function queryFromExplorer(view) {
  return {
    by: view.by === "stack" ? null : view.by,
    from: view.range ? String(Math.round(view.range[0])) : null,
    to: view.range ? String(Math.round(view.range[1])) : null,
    at: view.at === null ? null : String(view.at),
    fold: view.fold ? null : "0",
    drawn: view.drawn === "icicle" ? null : view.drawn,
    device: view.device === null ? null : String(view.device),
  };
}

/**
 * @param {URLSearchParams} query
 * @param {string} name
 */
function numberOf(query, name) {
  const text = query.get(name);
  const value = text === null || text.trim() === "" ? Number.NaN : Number(text);
  return Number.isInteger(value) ? value : null;
}

/**
 * The moment of a cursor, or the nearest that is shown.
 * @param {number} at
 * @param {number[]} moments rising
 */
export function withinShown(at, moments) {
  return moments.length === 0 ? at : Math.min(Math.max(at, moments[0]), moments[moments.length - 1]);
}

/**
 * What of a range lies in the recording; null where nothing does.
 * @param {[number, number] | null} range
 * @param {[number, number]} whole
 * @returns {[number, number] | null}
 */
export function withinWhole(range, whole) {
  if (!range || range[1] <= whole[0] || range[0] >= whole[1]) return null;
  return [Math.max(range[0], whole[0]), Math.min(range[1], whole[1])];
}

/**
 * A range around a place, within the recording, and never narrower than a few events.
 * @param {[number, number]} range
 * @param {number} factor
 * @param {number} at
 * @param {[number, number]} whole
 * @param {number} least
 * @returns {[number, number]}
 */
export function zoomed(range, factor, at, whole, least) {
  const span = Math.min(whole[1] - whole[0], Math.max(least, (range[1] - range[0]) * factor));
  const share = (at - range[0]) / Math.max(range[1] - range[0], 1e-9);
  return shifted([at - share * span, at - share * span + span], 0, whole);
}

/**
 * The same width somewhere else, within the recording.
 * @param {[number, number]} range
 * @param {number} delta
 * @param {[number, number]} whole
 * @returns {[number, number]}
 */
export function shifted(range, delta, whole) {
  const span = Math.min(range[1] - range[0], whole[1] - whole[0]);
  const from = Math.min(Math.max(range[0] + delta, whole[0]), whole[1] - span);
  return [Math.round(from), Math.round(from + span)];
}
