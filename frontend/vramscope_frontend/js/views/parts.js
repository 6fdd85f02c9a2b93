// Small parts that several views share.

import { el, setAttribute } from "../dom.js";

/** @typedef {import("../dom.js").Child} Child */

/**
 * A control with one choice out of few.
 * @template {string} V
 */
export class Segmented {
  /**
   * @param {string} label
   * @param {{value: V, text: string}[]} options
   * @param {(value: V) => void} onChoose
   */
  constructor(label, options, onChoose) {
    this.buttons = new Map(options.map(({ value, text }) => [value, el("button", { type: "button", "data-value": value, "aria-pressed": "false", click: () => onChoose(value) }, text)]));
    this.element = el("div", { class: "segmented", role: "group", "aria-label": label }, ...this.buttons.values());
  }

  /**
   * @param {V | null} value null when none of them describes what is shown
   */
  choose(value) {
    for (const [one, button] of this.buttons) setAttribute(button, "aria-pressed", one === value ? "true" : "false");
  }

  /**
   * @param {V} value
   * @param {string} text
   */
  label(value, text) {
    const button = this.buttons.get(value);
    if (button && button.textContent !== text) button.textContent = text;
  }

  /**
   * @param {V} value
   * @param {boolean} hidden
   */
  hide(value, hidden) {
    const button = this.buttons.get(value);
    if (button) button.hidden = hidden;
  }

  /**
   * @param {V} value
   * @param {string | null} reason null enables it
   */
  disable(value, reason) {
    const button = this.buttons.get(value);
    if (!button) return;
    button.disabled = reason !== null;
    setAttribute(button, "title", reason);
  }
}

/**
 * @param {string} title
 * @param {Child[]} header
 * @param {...Child} children
 */
export function panel(title, header, ...children) {
  return el("section", { class: "panel", "aria-label": title }, el("header", {}, el("h2", {}, title), ...header), ...children);
}

/**
 * A part that failed keeps its frame: what failed, retry, the code.
 * @param {string} what
 * @param {Error} error
 * @param {() => void} retry
 */
export function failedPart(what, error, retry) {
  const code = "code" in error ? String(error.code) : error.name;
  return el("div", { class: "failed", role: "alert" }, el("span", {}, `${what}: ${error.message} `, el("code", {}, code)), el("button", { class: "button small", type: "button", click: retry }, "Retry"));
}

/**
 * A table of texts; columns whose head starts with ">" are numbers.
 * @param {string[]} heads
 * @param {Child[][]} rows
 * @param {string} caption
 */
export function dataTable(heads, rows, caption) {
  const numeric = heads.map((head) => head.startsWith(">"));
  return el("table", { class: "data", "aria-label": caption },
    el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: numeric[i] ? "number" : null }, head.replace(/^>/, ""))))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, i) => el("td", { class: numeric[i] ? "number" : null }, cell))))));
}
