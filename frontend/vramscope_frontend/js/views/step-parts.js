// Forward, backward and optimizer of the step that is read: time, allocation volume, peak.

import { el, setAttribute, setText } from "../dom.js";
import { PARTS } from "../fields.js";
import { duration, exactBytes, inUnit, known, UNKNOWN } from "../format.js";

/** @typedef {import("../step-parts.js").StepParts} StepParts */

export class StepPartsTable {
  constructor() {
    this.unit = el("span", {}, "GiB");
    this.rows = new Map(PARTS.map((part) => {
      const cells = { name: el("th", { scope: "row" }, part), time: el("td", {}), volume: el("td", {}), peak: el("td", {}) };
      return [part, { ...cells, row: el("tr", {}, cells.name, cells.time, cells.volume, cells.peak) }];
    }));
    this.element = el("table", { class: "step-parts", hidden: true, "aria-label": "Parts of the step" },
      el("thead", {}, el("tr", {},
        el("th", { scope: "col" }, "Within the step"),
        el("th", { scope: "col", title: "Time on the training thread; a GPU may still be at work when it ends." }, "Time"),
        el("th", { scope: "col", title: "Bytes handed out to tensors in this part, whether or not they were freed again." }, "Handed out"),
        el("th", { scope: "col", title: "Highest number of bytes in tensors in this part." }, "Peak"))),
      el("tbody", {}, ...[...this.rows.values()].map(({ row }) => row)));
  }

  /**
   * @param {StepParts | null} parts
   * @param {{name: string, bytes: number}} unit
   */
  show(parts, unit) {
    this.element.hidden = parts === null;
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
