// Each rank of a small job in a picture of its own, on the scale of its device: which one is different?

import { HEIGHT, multiplePath, WIDTH } from "../charts/small-multiple.js";
import { el, setAttribute, setText, svg } from "../dom.js";
import { known, sizeText } from "../format.js";
import { headroomSeverity } from "../run-state.js";

/** @typedef {import("../ranks-model.js").RankRow} RankRow */
/** @typedef {import("../findings/growth-evidence.js").Evidence["severity"]} Severity */

/** Beyond that the page "Ranks" shows them. */
export const MOST_MULTIPLES = 8;
const REDRAW_MS = 1000;

class Multiple {
  /**
   * @param {number} rank
   * @param {() => void} choose
   */
  constructor(rank, choose) {
    this.left = el("span", { class: "left" });
    this.area = svg("path", { class: "multiple-area" });
    this.line = svg("path", { class: "multiple-line" });
    const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, this.area, svg("path", { class: "multiple-limit", d: `M0 .75H${WIDTH}` }), this.line);
    this.element = el("button", { class: "multiple", type: "button", click: choose }, el("span", { class: "name" }, `rank ${rank}`), this.left, picture);
    this.rank = rank;
  }

  /**
   * @param {RankRow} row
   * @param {{line: string, area: string} | null} path
   * @param {Severity | null} found of a finding on this rank
   */
  show(row, path, found) {
    const severity = headroomSeverity(row.free, row.limit);
    const tone = severity === "crit" || found === "crit" ? "crit" : severity === "warn" || found === "warn" ? "warn" : row.isOutlier ? "out" : null;
    setAttribute(this.element, "data-tone", tone);
    const marked = tone ? "▲ " : "";
    setText(this.left, known(row.free) ? `${marked}${sizeText(row.free)} left` : `${sizeText(row.peak)} used`);
    const words = known(row.free) ? `${sizeText(row.peak)} of ${sizeText(row.limit)} at the peak, ${sizeText(row.free)} left` : "limit not known";
    setAttribute(this.element, "aria-label", `Rank ${this.rank}: ${words}. Show what it consists of`);
    setAttribute(this.element, "title", `Rank ${this.rank} on ${row.info.host}: ${words}`);
    setAttribute(this.area, "d", path?.area ?? "");
    setAttribute(this.line, "d", path?.line ?? "");
  }
}

export class RankMultiples {
  /** @param {(rank: number) => void} choose */
  constructor(choose) {
    this.choose = choose;
    /** @type {Map<number, Multiple>} */
    this.shown = new Map();
    this.list = el("div", { class: "multiples" });
    this.element = el("section", { class: "multiples-wrap", "aria-label": "Each rank by itself", hidden: true }, this.list, el("p", { class: "envelope-note" }, "Each rank from 0 to the limit of its device, over the same time up to now. Choose one to see what it consists of."));
    this.drawn_ms = -Infinity;
    /** Seconds that are shown. */
    this.width = 0;
  }

  /**
   * @param {RankRow[]} rows
   * @param {import("../data/rank-matrix.js").RankMatrix} matrix
   * @param {[number, number]} range
   * @param {{ranks: number[], severity: Severity} | null} found what the chart above accuses
   */
  show(rows, matrix, range, found) {
    const width = Math.round(range[1] - range[0]);
    // Beside the large chart these need not move as often; what the reader chose shows at once.
    if (width === this.width && rows.length === this.shown.size && performance.now() - this.drawn_ms < REDRAW_MS) return;
    this.width = width;
    this.drawn_ms = performance.now();
    const { t, used } = matrix.picture(240);
    // Of a forecast there is nothing to see here.
    /** @type {[number, number]} */
    const seen = [range[0], Math.min(range[1], (t.at(-1) ?? range[1]) + (t.length > 1 ? t[1] - t[0] : 0))];
    const sorted = [...rows].sort((a, b) => a.rank - b.rank);
    if (sorted.map((row) => row.rank).join() !== [...this.shown.keys()].join()) {
      this.shown = new Map(sorted.map((row) => [row.rank, new Multiple(row.rank, () => this.choose(row.rank))]));
      this.list.replaceChildren(...[...this.shown.values()].map((one) => one.element));
    }
    const top = Math.max(0, ...sorted.map((row) => row.peak ?? 0).filter(known));
    for (const row of sorted) this.shown.get(row.rank)?.show(row, multiplePath(t, used.get(row.rank) ?? [], seen, row.limit ?? top), found?.ranks.includes(row.rank) ? found.severity : null);
  }
}
