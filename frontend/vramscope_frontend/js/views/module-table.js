// Memory by module: what the command profile_modules has found, one row a module, as a tree or by
// what weighs most.

import { el, fill } from "../dom.js";
import { count, exactBytes, inUnit, known, tableUnit } from "../format.js";
import { Segmented } from "./parts.js";

/**
 * @typedef {object} ModuleRow
 * @property {string} path
 * @property {string} type
 * @property {number} depth
 * @property {number} parameters_bytes
 * @property {number} buffers_bytes
 * @property {number} calls
 * @property {number | null} kept_bytes
 * @property {number | null} forward_peak_bytes
 * @property {number | null} forward_extra_bytes
 * @property {number | null} backward_peak_bytes
 * @property {number | null} backward_extra_bytes
 * @property {boolean} recomputed
 */

/** @typedef {{steps: number, modules: ModuleRow[], modules_left_out: number, added_ms_per_step: number}} ModuleReport */
/** @typedef {"tree" | "kept" | "forward" | "backward"} ModuleOrder */
/** @typedef {"parameters_bytes" | "kept_bytes" | "forward_extra_bytes" | "backward_extra_bytes"} ModuleColumn */

/** @type {{id: ModuleColumn, name: string, definition: string}[]} */
const COLUMNS = [
  { id: "parameters_bytes", name: "Parameters", definition: "Of the module and all within it; weights that are shared count once." },
  { id: "kept_bytes", name: "Kept", definition: "Allocated in its forward and still there at its end: saved for the backward, or handed on as its output." },
  { id: "forward_extra_bytes", name: "In its forward", definition: "Highest allocated while its forward ran, beyond what was there when it began." },
  { id: "backward_extra_bytes", name: "In its backward", definition: "Highest allocated while its backward ran, beyond what was there when it began." },
];

/** @type {Record<Exclude<ModuleOrder, "tree">, ModuleColumn>} */
const ORDER_BY = { kept: "kept_bytes", forward: "forward_extra_bytes", backward: "backward_extra_bytes" };

/**
 * @param {unknown} result of a receipt
 * @returns {ModuleReport | null}
 */
export function moduleReport(result) {
  const report = /** @type {Partial<ModuleReport> | null} */ (result);
  return report !== null && typeof report === "object" && Array.isArray(report.modules) ? /** @type {ModuleReport} */ (report) : null;
}

/**
 * Rows in the order that was asked for; those that do not say go last.
 * @param {ModuleRow[]} rows
 * @param {ModuleOrder} order
 */
export function inOrder(rows, order) {
  if (order === "tree") return rows;
  const name = ORDER_BY[order];
  const weight = (/** @type {ModuleRow} */ row) => row[name] ?? -1;
  return [...rows].sort((a, b) => weight(b) - weight(a));
}

/**
 * The answer in a sentence: which module keeps most.
 * @param {ModuleReport} report
 */
export function moduleSentence(report) {
  // The model as a whole always keeps most, and says nothing.
  const leaves = report.modules.filter((row, i) => (report.modules[i + 1]?.depth ?? 0) <= row.depth);
  const [first] = inOrder(leaves, "kept");
  if (!first || !known(first.kept_bytes)) return "No module ran in the steps that were watched.";
  const unit = tableUnit(first.kept_bytes);
  return `Of single modules ${first.path} keeps most for the backward: ${inUnit(first.kept_bytes, unit)} ${unit.name}.`;
}

/** @param {ModuleReport} report */
export function moduleTable(report) {
  const body = el("tbody", {});
  const highest = Math.max(0, ...report.modules.flatMap((row) => COLUMNS.map(({ id }) => row[id] ?? 0)));
  const unit = tableUnit(highest);
  const most = Math.max(1, ...report.modules.map((row) => row.kept_bytes ?? 0));
  const order = new Segmented("Order of the modules", /** @type {{value: ModuleOrder, text: string}[]} */ ([{ value: "tree", text: "Model" }, { value: "kept", text: "Kept" }, { value: "forward", text: "Forward" }, { value: "backward", text: "Backward" }]), show);

  /** @param {ModuleOrder} value */
  function show(value) {
    order.choose(value);
    fill(body, ...inOrder(report.modules, value).map((row) => rowOf(row, value === "tree")));
  }

  /**
   * @param {ModuleRow} row
   * @param {boolean} isTree
   */
  function rowOf(row, isTree) {
    const name = isTree && row.depth > 0 ? row.path.slice(row.path.lastIndexOf(".") + 1) : row.path;
    const bar = el("span", { class: "module-bar", "aria-hidden": "true" });
    bar.style.width = `${((row.kept_bytes ?? 0) / most) * 100}%`;
    const cell = el("th", { scope: "row", title: `${row.path} (${row.type}), ${count(row.calls)} forwards a step${row.recomputed ? ", run again in the backward" : ""}` }, el("code", {}, name), " ", el("span", { class: "context" }, row.type), row.recomputed ? el("span", { class: "context" }, " · run again") : null);
    cell.style.paddingLeft = `${8 + (isTree ? Math.min(row.depth, 12) * 12 : 0)}px`;
    return el("tr", {}, cell, ...COLUMNS.map(({ id }) => el("td", { class: "number", title: exactBytes(row[id]) }, inUnit(row[id], unit))), el("td", { class: "module-share" }, bar));
  }

  show("tree");
  const left = report.modules_left_out ? ` ${count(report.modules_left_out)} smaller modules are left out.` : "";
  return el("div", { class: "module-memory" },
    el("p", {}, moduleSentence(report), " ", el("span", { class: "context" }, `The most of ${count(report.steps)} steps; watching added ${report.added_ms_per_step.toFixed(1)} ms a step.${left}`)),
    order.element,
    el("table", { class: "data modules", "aria-label": "Memory by module" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, `Module, ${unit.name}`), ...COLUMNS.map(({ name, definition }) => el("th", { scope: "col", class: "number", title: definition }, name)), el("th", { scope: "col" }, "Kept"))),
      body));
}
