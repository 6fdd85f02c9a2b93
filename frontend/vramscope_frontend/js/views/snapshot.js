// One snapshot: who holds the memory at that moment?

import { el, fillWhenChanged } from "../dom.js";
import { panel } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */

export class Snapshot {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.body = el("div", { class: "body" });
    this.element = panel("Live memory", [], this.body);
  }

  close() {}

  update() {
    fillWhenChanged(this.body, this.page.snapshot ?? "", () => [el("a", { href: this.page.pathOf("snapshots") }, "All snapshots of this run")]);
  }
}
