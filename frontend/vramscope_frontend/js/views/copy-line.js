// A command to copy: the text as it is typed, and the button beside it.

import { copyFrom, el } from "../dom.js";

/**
 * @param {string} command
 * @param {{primary?: boolean}} [look]
 * @returns {[HTMLPreElement, HTMLButtonElement]}
 */
export function copyLine(command, { primary = false } = {}) {
  const copy = el("button", { class: primary ? "button primary" : "button", type: "button", "aria-label": `Copy: ${command}`, click: () => void copyFrom(copy, command) }, "Copy");
  return [el("pre", { title: command, tabindex: 0 }, command), copy];
}
