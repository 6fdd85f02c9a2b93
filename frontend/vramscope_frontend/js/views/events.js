// What happened to the run, newest first.

import { el, fillWhenChanged } from "../dom.js";
import { clock, clockWithUtc, count, known } from "../format.js";

/** @typedef {import("../marks.js").Happening} Happening */

/**
 * @param {HTMLElement} body
 * @param {Happening[]} all newest last
 * @param {number} most
 * @param {((time_ns: number) => number | null) | null} [stepAt] the step that was running; null: all are told by the clock
 */
export function showHappenings(body, all, most, stepAt) {
  const shown = all.slice(-most).reverse().map((one) => (stepAt === undefined ? one : { ...one, step: stepAt && (one.step ?? stepAt(one.time_ns)) }));
  fillWhenChanged(body, JSON.stringify(shown.map((one) => [one.time_ns, one.kind, one.text, one.step])), () =>
    shown.length === 0
      ? [el("p", { class: "empty-line" }, "Nothing has happened yet: attaching, exceptions, marks and commands are listed here.")]
      : [el("ul", { class: "events" }, ...shown.map((one) => el("li", { title: clockWithUtc(one.time_ns) }, el("span", { class: "step" }, known(one.step) ? count(one.step) : clock(one.time_ns).slice(0, 5)), el("span", { class: one.kind === "exception" || one.kind === "oom" ? "glyph crit" : "glyph", "aria-hidden": "true" }, one.glyph), el("span", { class: "text", title: one.text }, one.text))))]);
}
