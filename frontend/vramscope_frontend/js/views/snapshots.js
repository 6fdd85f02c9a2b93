// Snapshots: what was recorded of this run, and how to record more?

import { api } from "../api.js";
import { el, fillWhenChanged } from "../dom.js";
import { failedPart, panel } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */

export class Snapshots {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    /** @type {import("../messages.js").SnapshotInfo[] | null} */
    this.snapshots = null;
    /** @type {Error | null} */
    this.error = null;
    this.aborting = new AbortController();
    this.body = el("div", { class: "body" });
    this.element = panel("Snapshots", [], this.body);
    void this.load();
  }

  close() {
    this.aborting.abort();
  }

  async load() {
    try {
      this.snapshots = await api.snapshots(this.page.id, this.aborting.signal);
      this.error = null;
    } catch (error) {
      if (this.aborting.signal.aborted) return;
      this.error = /** @type {Error} */ (error);
    }
    this.page.changed();
  }

  update() {
    const { error, snapshots } = this;
    if (error) fillWhenChanged(this.body, error.message, () => [failedPart("The list of snapshots", error, () => void this.load())]);
    else if (snapshots) fillWhenChanged(this.body, JSON.stringify(snapshots), () => (snapshots.length === 0 ? [el("p", { class: "empty-line" }, "No snapshot of this run yet.")] : snapshots.map((one) => el("p", {}, el("a", { href: this.page.snapshotPath(one.id) }, one.id)))));
  }
}
