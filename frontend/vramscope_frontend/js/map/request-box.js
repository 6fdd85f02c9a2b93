// The next request, drawn to the scale of the rows below it.

import { el, fill, setAttribute } from "../dom.js";
import { sizeText } from "../format.js";

/** @typedef {import("./fits.js").Fit} Fit */

/** A letter of the text at its size, at most on average. */
const LETTER = 6.6;
const GAP = 24;
const WHERE = {
  block: "It fits into a free block below.",
  grow: "It fits: an expandable segment grows.",
  segment: "It takes a new segment.",
  flush: "It fits once cached segments went back.",
  nowhere: "It fits nowhere below.",
  unknown: "Whether a new segment can be had is not known.",
};

export class RequestBox {
  constructor() {
    this.text = el("span", {});
    this.box = el("div", { class: "map-box" });
    this.element = el("div", { class: "map-request" }, this.box, this.text);
  }

  /**
   * @param {number} request_bytes
   * @param {Fit} fit
   * @param {{scale: number, width: number}} frame
   * @param {boolean} isTyped
   */
  show(request_bytes, fit, frame, isTyped) {
    this.element.hidden = request_bytes <= 0;
    const width = fit.size * frame.scale;
    this.box.style.width = `${Math.min(width, frame.width)}px`;
    const lead = "next request, same scale: ";
    const rest = `${isTyped ? "" : ", as the largest block now"}. ${WHERE[fit.kind]}`;
    const needed = (/** @type {string} */ text) => (text.length + sizeText(request_bytes).length) * LETTER + GAP;
    const inside = width >= needed(lead + rest);
    const isWide = inside || frame.width - width >= needed(lead + rest);
    fill(this.text, isWide ? lead : "", el("b", {}, sizeText(request_bytes)), rest);
    this.text.style.width = inside ? `${Math.min(width, frame.width)}px` : "";
    setAttribute(this.element, "data-fit", fit.kind === "nowhere" || fit.kind === "flush" ? "no" : "yes");
    setAttribute(this.element, "data-inside", inside ? "true" : null);
  }
}
