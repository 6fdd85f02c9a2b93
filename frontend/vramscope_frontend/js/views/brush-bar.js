// The bar at the right end of a range that was marked: what it holds, and where it leads.

import { copyFrom, el, fill } from "../dom.js";
import { brushText } from "../brush-facts.js";

/** @typedef {import("../brush-facts.js").BrushFacts} BrushFacts */

/**
 * @typedef {object} BrushDoes
 * @property {() => void} zoom
 * @property {() => void} close
 * @property {(() => void) | null} record null where nothing can be recorded now
 * @property {string} link of exactly this range
 * @property {{address: string, compare: string | null, what: string, isWhole: boolean} | null} snapshot what of the range was recorded
 */

export class BrushBar {
  constructor() {
    this.element = el("div", { class: "brush-bar", role: "dialog", "aria-label": "Marked range", hidden: true });
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /**
   * @param {BrushFacts} facts
   * @param {BrushDoes} does
   */
  open(facts, does) {
    const zoom = el("button", { class: "button small", type: "button", click: does.zoom }, "Zoom");
    const copy = el("button", { class: "button small", type: "button", click: () => void copyFrom(copy, does.link) }, "Copy link");
    const close = el("button", { class: "button link", type: "button", "aria-label": "Close", click: does.close }, "✕");
    fill(this.element,
      el("p", {}, el("b", {}, facts.duration), " ", el("span", { class: "ink2" }, brushText(facts))),
      el("div", { class: "buttons" }, zoom,
        does.snapshot && el("a", { class: "button small", href: does.snapshot.address }, does.snapshot.isWhole ? "Snapshot of this range" : "Open what was recorded"),
        does.snapshot?.compare && el("a", { class: "button small", href: does.snapshot.compare, title: "What grew from the first step that ended in it to the last" }, "Compare ends"),
        copy, close),
      does.snapshot?.isWhole ? null : el("p", { class: "ink3" }, does.snapshot ? `Of this only ${does.snapshot.what} recorded. ` : "No recording covers this. ", does.record && el("button", { class: "button link", type: "button", click: does.record }, "Record the next 3 steps…")));
    this.element.hidden = false;
    zoom.focus({ preventScroll: true });
  }

  /**
   * @param {number} right_px end of the range within the chart
   * @param {number} top_px
   * @param {number} width_px of the chart
   */
  place(right_px, top_px, width_px) {
    const left = Math.max(4, Math.min(right_px + 8, width_px - this.element.offsetWidth - 4));
    Object.assign(this.element.style, { left: `${left}px`, top: `${top_px}px` });
  }

  close() {
    this.element.hidden = true;
    this.element.replaceChildren();
  }
}
