// The confirmation of what changes training: a box that names it, unticked at first.

import { el } from "../dom.js";

export class Consent {
  /**
   * @param {string | null} text what changes; null: nothing is asked
   * @param {() => void} onChange
   */
  constructor(text, onChange) {
    this.box = el("input", { type: "checkbox" });
    this.box.addEventListener("change", onChange);
    this.element = text === null ? null : el("label", { class: "consent" }, this.box, el("span", {}, el("b", {}, "This changes training. "), text));
    this.isAsked = text !== null;
  }

  get isGiven() {
    return !this.isAsked || this.box.checked;
  }

  /** Why it cannot be done yet; null when it can. */
  get missing() {
    return this.isGiven ? null : "Tick the box first: it names what changes.";
  }

  reset() {
    this.box.checked = false;
  }
}
