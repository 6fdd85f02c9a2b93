// Map: will the next request fit, and what is in the way?

import { el, fillWhenChanged } from "../dom.js";
import { panel } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */

export class MemoryMap {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.body = el("div", { class: "body" });
    this.element = panel("Memory map", [], this.body);
  }

  close() {}

  update() {
    fillWhenChanged(this.body, "none", () => [el("p", { class: "empty-line" }, "No map of the segments of this run has arrived.")]);
  }
}
