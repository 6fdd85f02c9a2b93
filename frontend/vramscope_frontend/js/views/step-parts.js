// Forward, backward and optimizer of the step that is read: time, allocation volume, peak.

import { el, setAttribute, setText } from "../dom.js";
import { PARTS } from "../fields.js";
import { count, duration, exactBytes, inUnit, known, UNKNOWN } from "../format.js";

/** @typedef {import("../step-parts.js").PartsOfStep} PartsOfStep */

export class StepPartsTable {
  constructor() {
    this.head = el("th", { scope: "col" }, "Within the step");
    this.rows = new Map(PARTS.map((part) => {
      const cells = { name: el("th", { scope: "row" }, part), time: el("td", {}), volume: el("td", {}), peak: el("td", {}) };
      return [part, { ...cells, row: el("tr", {}, cells.name, cells.time, cells.volume, cells.peak) }];
    }));
    this.element = el("table", { class: "step-parts", hidden: true, "aria-label": "Parts of the step" },
      el("thead", {}, el("tr", {},
        this.head,
        el("th", { scope: "col", title: "Time on the training thread; a GPU may still be at work when it ends." }, "Time"),
        el("th", { scope: "col", title: "Bytes handed out to tensors in this part, whether or not they were freed again." }, "Handed out"),
        el("th", { scope: "col", title: "Highest number of bytes in tensors in this part." }, "Peak"))),
      el("tbody", {}, ...[...this.rows.values()].map(({ row }) => row)));
  }

  /**
   * @param {PartsOfStep | null} parts
   * @param {{name: string, bytes: number}} unit
   */
  show(parts, unit) {
    this.element.hidden = parts === null;
    setText(this.head, parts ? `Step ${count(parts.number)}` : "");
    setAttribute(this.head, "title", parts && !parts.isOwn ? "Not every step is split into its parts, to keep the cost down: this is the last one before that was." : null);
    for (const part of parts?.rows ?? []) {
      const cells = this.rows.get(part.name);
      if (!cells) continue;
      setText(cells.time, known(part.time_s) ? duration(part.time_s) : UNKNOWN);
      setText(cells.volume, inUnit(part.volume, unit));
      setText(cells.peak, inUnit(part.peak, unit));
      setAttribute(cells.volume, "title", exactBytes(part.volume));
      setAttribute(cells.peak, "title", exactBytes(part.peak));
      cells.row.classList.toggle("highest", part.isHighest);
      setAttribute(cells.row, "title", part.isHighest ? "Here the step was highest." : null);
    }
  }
}
