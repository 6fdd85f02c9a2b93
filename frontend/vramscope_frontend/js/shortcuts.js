// Keyboard shortcuts: one table for what they do and for the sheet that lists them. Letters never
// act on the job: they open the dry run.

import { el, fill } from "./dom.js";
import { setShortcuts, shortcutsAreOn } from "./settings.js";

/** @typedef {{keys: string, text: string}} Line */

/** @type {{title: string, lines: Line[]}[]} */
const SHEET = [
  { title: "Everywhere", lines: [{ keys: "?", text: "this sheet" }, { keys: "/", text: "find" }, { keys: "t", text: "dark or light" }, { keys: "c", text: "copy a link to exactly this view" }, { keys: "Esc", text: "close, or up" }] },
  { title: "Pages", lines: [{ keys: "g u", text: "runs" }, { keys: "g o", text: "overview" }, { keys: "g r", text: "ranks" }, { keys: "g f", text: "findings" }, { keys: "g m", text: "map" }, { keys: "g s", text: "snapshots" }, { keys: "g c", text: "commands" }, { keys: "g a", text: "about" }] },
  { title: "Runs and findings", lines: [{ keys: "j k", text: "next, previous" }, { keys: "Enter", text: "open" }] },
  { title: "Chart", lines: [{ keys: "f", text: "follow" }, { keys: "[ ]", text: "previous, next step" }, { keys: "← →", text: "cursor (Shift: by 10)" }, { keys: "+ −", text: "zoom" }, { keys: "Backspace", text: "previous range" }, { keys: "0", text: "whole run" }, { keys: "p", text: "to the peak" }, { keys: "y", text: "only the moving part" }, { keys: "l", text: "lines or composition" }] },
  { title: "Act", lines: [{ keys: "e", text: "free cache… (dry run first)" }, { keys: "s", text: "take snapshot…" }] },
];

/**
 * @typedef {object} Targets
 * @property {(key: string) => boolean} onKey handles a single key on the page that is open
 * @property {(letter: string) => boolean} onGo second key after `g`
 */

/** @param {Targets} targets */
export function listenForShortcuts(targets) {
  let gone_ms = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !shortcutsAreOn()) return;
    const target = event.target instanceof Element ? event.target : null;
    if (document.querySelector("dialog[open]") || target?.closest("input, select, textarea, [contenteditable]")) return;
    // A focused control keeps its own keys.
    if (target?.closest("button, a") && (event.key === "Enter" || event.key === " ")) return;
    if (target?.closest("[role=menu]") && event.key.startsWith("Arrow")) return;
    const isSecond = performance.now() - gone_ms < 1200;
    gone_ms = -Infinity;
    if (isSecond && targets.onGo(event.key)) event.preventDefault();
    else if (event.key === "g") gone_ms = performance.now();
    else if (targets.onKey(event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key)) event.preventDefault();
  });
}

/** Show the sheet; it also switches the shortcuts off. */
export function openSheet() {
  if (document.querySelector("dialog[open]")) return;
  const on = el("input", { type: "checkbox" });
  on.checked = shortcutsAreOn();
  on.addEventListener("change", () => setShortcuts(on.checked));
  const close = el("button", { class: "button", type: "button", click: () => dialog.close() }, "Close");
  const dialog = el("dialog", { "aria-labelledby": "sheet-title", close: () => dialog.remove(), keydown: (/** @type {KeyboardEvent} */ event) => event.stopPropagation() });
  fill(dialog, el("header", {}, el("h2", { id: "sheet-title" }, "Keyboard"), el("div", { class: "controls" }, el("kbd", {}, "Esc"))),
    el("div", { class: "body" }, ...SHEET.flatMap((part) => [el("h3", {}, part.title), el("div", { class: "keys" }, ...part.lines.map((line) => el("div", {}, el("span", {}, ...line.keys.split(" ").flatMap((key) => [el("kbd", {}, key), " "])), el("span", {}, line.text))))])),
    el("footer", {}, el("label", { class: "check left" }, on, "Keyboard shortcuts are on"), close));
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}
