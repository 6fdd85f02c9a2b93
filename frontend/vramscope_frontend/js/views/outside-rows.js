// What lies behind two rows of the breakdown: named parts of the CUDA context and libraries, and the
// other processes on the device. Folded away until somebody asks.

import { el, setAttribute } from "../dom.js";
import { exactBytes, inUnit, known, UNKNOWN } from "../format.js";

/** @typedef {import("../messages.js").AgentStatus} AgentStatus */
/** @typedef {{name: string, bytes: number | null, title: string}} Line */

/**
 * Named parts, and what no name was found for.
 * @param {AgentStatus | null} status
 * @param {number | null} total of the row, now
 * @returns {Line[]}
 */
export function outsideLines(status, total) {
  const parts = (status?.outside ?? []).filter((part) => part.bytes > 0);
  if (parts.length === 0) return [];
  const named = parts.reduce((sum, part) => sum + part.bytes, 0);
  const rest = known(total) ? total - named : null;
  return [
    ...parts.map(({ name, bytes, how }) => ({ name, bytes, title: [how, exactBytes(bytes)].filter(Boolean).join(", ") })),
    ...(known(rest) && rest > 0 ? [{ name: "not named", bytes: rest, title: `What is left: kernels, libraries, and what could not be told apart; ${exactBytes(rest)}` }] : []),
  ];
}

/**
 * @param {AgentStatus | null} status
 * @param {number | null} pid of the process that is watched
 * @returns {Line[]}
 */
export function processLines(status, pid) {
  return (status?.processes ?? []).filter((one) => one.pid !== pid).map(({ pid: other, command, bytes = null }) => ({
    name: `${command || "not known"}, pid ${other}`,
    bytes,
    title: known(bytes) ? exactBytes(bytes) : "The driver does not say how much it holds.",
  }));
}

/** A row of a table that unfolds further rows below it: its name becomes the button. */
export class Unfolding {
  /**
   * @param {HTMLTableRowElement} row
   * @param {HTMLElement} name
   */
  constructor(row, name) {
    this.row = row;
    this.name = name;
    this.isOpen = false;
    /** @type {HTMLTableRowElement[]} */
    this.rows = [];
    this.key = "";
    this.arrow = el("span", { "aria-hidden": "true" }, "▸");
    this.button = el("button", { class: "unfold", type: "button", "aria-expanded": "false", hidden: true, click: () => this.toggle() }, name.textContent, this.arrow);
    name.after(this.button);
  }

  toggle() {
    this.isOpen = !this.isOpen;
    setAttribute(this.button, "aria-expanded", this.isOpen ? "true" : "false");
    this.arrow.textContent = this.isOpen ? "▾" : "▸";
    for (const row of this.rows) row.hidden = !this.isOpen;
  }

  /**
   * @param {Line[]} lines
   * @param {{bytes: number}} unit
   */
  show(lines, unit) {
    this.button.hidden = lines.length === 0;
    this.name.hidden = lines.length > 0;
    const key = JSON.stringify([lines, unit.bytes]);
    if (key === this.key) return;
    this.key = key;
    for (const row of this.rows) row.remove();
    this.rows = lines.map(({ name, bytes, title }) => el("tr", { class: "part", hidden: !this.isOpen, title }, el("td", {}, name), el("td", {}, known(bytes) ? inUnit(bytes, unit) : UNKNOWN), el("td", {})));
    this.row.after(...this.rows);
  }
}
