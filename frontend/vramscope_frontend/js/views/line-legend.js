// The table beside the Lines view: the stroke of each line and its value at the cursor or at the end.

import { readTokens } from "../charts/theme.js";
import { el, fillWhenChanged, setAttribute, setText } from "../dom.js";
import { exactBytes, inUnit } from "../format.js";
import { highest, indexAt } from "../series.js";
import { lineSwatch } from "./breakdown.js";

/** @typedef {import("../charts/timeline.js").TimelineModel} TimelineModel */

export class LineLegend {
  constructor() {
    this.unitHead = el("th", { scope: "col" }, "GiB");
    this.atHead = el("th", { scope: "col" }, "Step end");
    this.highHead = el("th", { scope: "col" }, "Highest");
    this.body = el("tbody", {});
    this.note = el("p", { class: "breakdown-note" }, "Point at the chart to read any moment here.");
    this.element = el("div", { class: "breakdown-wrap" }, el("table", { class: "breakdown" }, el("thead", {}, el("tr", {}, this.unitHead, this.atHead, this.highHead)), this.body), this.note);
  }

  themeChanged() {
    delete this.body.dataset.key;
  }

  /**
   * @param {TimelineModel} model
   * @param {number | null} cursor
   * @param {string} label
   */
  show(model, cursor, label) {
    const lines = model.lines ?? [];
    setText(this.unitHead, model.unit.name);
    setText(this.atHead, label);
    this.atHead.classList.toggle("at", cursor !== null);
    fillWhenChanged(this.body, lines.map((line) => line.id).join(), () => {
      const tokens = readTokens();
      const total = model.limit ? [el("tr", {}, el("td", {}, lineSwatch({ ink: "ink", dash: "solid" }, tokens), `${model.limit.label === "device" ? "Device total" : "Limit"}`), el("td", {}), el("td", {}))] : [];
      return [...total, ...lines.map((line) => el("tr", { "data-line": line.id }, el("td", {}, lineSwatch(line, tokens), line.name), el("td", {}), el("td", {})))];
    });
    if (model.limit) write(/** @type {HTMLTableRowElement} */ (this.body.rows[0]), model.limit.bytes, model.limit.bytes, model);
    for (const line of lines) {
      const row = [...this.body.rows].find((one) => one.dataset.line === line.id);
      const index = cursor === null ? line.values.length - 1 : Math.max(0, indexAt(model.x, cursor));
      if (row) write(row, line.values[index], highest(line.values)?.value ?? null, model);
    }
  }
}

/**
 * @param {HTMLTableRowElement} row
 * @param {number} at
 * @param {number | null} high
 * @param {TimelineModel} model
 */
function write(row, at, high, model) {
  [at, high].forEach((bytes, i) => {
    setText(row.cells[i + 1], inUnit(bytes, model.unit));
    setAttribute(row.cells[i + 1], "title", exactBytes(bytes));
  });
}
