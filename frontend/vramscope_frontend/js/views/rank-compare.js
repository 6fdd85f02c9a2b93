// The panel that sets one rank beside the median: two bars to the limit, and the table of differences.

import { CROSSED, hatchColour, readTokens } from "../charts/theme.js";
import { el } from "../dom.js";
import { changeInUnit, count, exactBytes, inUnit, known, sizeText, tableUnit } from "../format.js";
import { isLarge } from "../rank-compare.js";
import { swatch } from "./breakdown.js";
import { dataTable } from "./parts.js";

/** @typedef {import("../rank-compare.js").CompareRow} CompareRow */
/** @typedef {import("../charts/theme.js").Tokens} Tokens */
/** @typedef {import("../composition.js").Layer} Layer */

/**
 * @typedef {object} Compared
 * @property {number} rank
 * @property {number | null} step of its highest moment
 * @property {CompareRow[]} rows bottom to top; empty while only totals are known
 * @property {{used: number | null, free: number | null}} median
 * @property {{used: number | null, free: number | null}} own
 * @property {number | null} limit
 */

/**
 * Colour and hatch of a layer as a background.
 * @param {Layer} layer
 * @param {Tokens} tokens
 */
export function backgroundOf(layer, tokens) {
  const colour = tokens.category[layer.id];
  if (!layer.pattern) return colour;
  const stroke = hatchColour(tokens, layer.id);
  const ground = CROSSED.has(layer.id) ? colour : tokens.panel;
  const lines = (/** @type {number} */ angle, width = 2) => `repeating-linear-gradient(${angle}deg, ${stroke} 0 ${width}px, transparent ${width}px 6px)`;
  const hatches = { "/": [lines(135)], "\\": [lines(45)], x: [lines(45, 1), lines(135, 1)], "-": [lines(0)], ".": [`radial-gradient(${stroke} 1.2px, transparent 1.6px) 0 0 / 5px 5px`] };
  return `${hatches[layer.pattern].join(", ")}, ${ground}`;
}

/**
 * @param {Compared} compared
 * @returns {Node[]}
 */
export function compareParts({ rank, step, rows, median, own, limit }) {
  const tokens = readTokens();
  const unit = tableUnit(limit ?? own.used);
  const piece = (/** @type {string} */ name, /** @type {number | null} */ bytes, /** @type {string} */ background) => {
    const part = el("i", { title: `${name}: ${exactBytes(bytes)}` });
    part.style.width = known(bytes) && known(limit) ? `${Math.min(100, (bytes / limit) * 100)}%` : "0";
    part.style.background = background;
    return part;
  };
  const bar = (/** @type {string} */ name, /** @type {"own" | "median"} */ side, /** @type {number | null} */ used) =>
    el("div", { class: "bar-row" }, el("span", {}, name), el("div", { class: "bar" }, ...(rows.length ? rows.map((row) => piece(row.layer.name, row[side], backgroundOf(row.layer, tokens))) : [piece("Used on the device", used, tokens.category.tensors)])));
  const line = (/** @type {string} */ name, /** @type {number | null} */ a, /** @type {number | null} */ b) => {
    const change = known(a) && known(b) ? b - a : null;
    const bad = isLarge(change, limit) && (name === "Head-room" ? (change ?? 0) < 0 : (change ?? 0) > 0);
    return [name, numberCell(a, unit), numberCell(b, unit), changeCell(change, bad, unit)];
  };
  const table = dataTable([`${unit.name} at peak`, ">Median", `>Rank ${rank}`, ">Difference"], [
    ...[...rows].reverse().map((row) => [el("span", { title: row.layer.definition }, swatch(row.layer.id, tokens), ` ${row.layer.name}`), numberCell(row.median, unit), numberCell(row.own, unit), changeCell(row.change, row.isLarge, unit)]),
    line("Used on the device", median.used, own.used),
    line("Head-room", median.free, own.free),
  ], "Comparison with the median");
  for (const body of table.tBodies) [...body.rows].forEach((tr, i) => {
    tr.classList.toggle("zero", i < rows.length && /^(0\.0|–)$/.test(tr.cells[3].textContent ?? ""));
    tr.classList.toggle("sum", i === rows.length && rows.length > 0);
  });
  const axis = known(limit) ? el("div", { class: "bar-row bar-axis" }, el("span", {}), el("div", {}, el("span", {}, "0"), el("span", {}, `${sizeText(limit)}, the limit`))) : null;
  return [el("div", { class: "bars" }, bar(`rank ${rank}`, "own", own.used), bar("median", "median", median.used), axis), table, ...(known(step) && rows.length ? [el("p", { class: "ink3 compare-note" }, `Each rank at its own highest step; for rank ${rank} that is step ${count(step)}.`)] : [])];
}

/**
 * @param {number | null} bytes
 * @param {{bytes: number}} unit
 */
function numberCell(bytes, unit) {
  return el("span", { title: exactBytes(bytes) }, inUnit(bytes, unit));
}

/**
 * @param {number | null} change
 * @param {boolean} bad
 * @param {{bytes: number}} unit
 */
function changeCell(change, bad, unit) {
  const text = changeInUnit(change, unit);
  return el("span", { class: bad ? "crit" : null }, bad ? el("b", {}, text) : text);
}
