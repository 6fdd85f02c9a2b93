// The next request, drawn to the scale of the rows below it.

import { el, fill, setAttribute } from "../dom.js";
import { sizeText } from "../format.js";

/** @typedef {import("./fits.js").Fit} Fit */

const TEXT_INSIDE_FROM = 420;
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
    fill(this.text, "next request, same scale: ", el("b", {}, sizeText(request_bytes)), `${isTyped ? "" : ", as the largest block now"}. ${WHERE[fit.kind]}`);
    setAttribute(this.element, "data-fit", fit.kind === "nowhere" || fit.kind === "flush" ? "no" : "yes");
    setAttribute(this.element, "data-inside", width >= TEXT_INSIDE_FROM ? "true" : null);
  }
}
