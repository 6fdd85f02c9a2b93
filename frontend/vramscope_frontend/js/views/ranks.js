// Ranks: which rank is different, and since when?

import { Heatmap } from "../charts/heatmap.js";
import { readTokens } from "../charts/theme.js";
import { RankPeaks } from "../data/rank-peaks.js";
import { el, fillWhenChanged, setAttribute } from "../dom.js";
import { findingTitle, presentFindings } from "../findings.js";
import { clock, count, inUnit, known, percent, plural, sizeText, tableUnit } from "../format.js";
import { compareRows, median as medianOf, mostAbove } from "../rank-compare.js";
import { isGone, lastWords, restartedAt, restartsText } from "../restarts.js";
import { headroomSeverity } from "../run-state.js";
import { dataTable, failedPart, panel, Segmented } from "./parts.js";
import { compareParts } from "./rank-compare.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../ranks-model.js").RankRow} RankRow */

const RESORT_MS = 10_000;
const LEGEND = ["under 2.5 %", "to 5 %", "5 %", "10 %", "16 %", "20 % and more"];

export class Ranks {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    /** @type {number | null} */
    this.picked = null;
    this.actsOnAll = true;
    /** @type {number[]} */
    this.order = [];
    this.sorted_ms = -Infinity;
    /** Ranks whose use was known when they were sorted: while they load the order is not settled. */
    this.sortedRows = -1;
    /** @type {"worst" | "rank" | "host"} */
    this.sort = "worst";
    this.sorts = new Segmented("Order of the ranks", [{ value: "worst", text: "Worst first" }, { value: "host", text: "By host" }, { value: "rank", text: "By rank" }], (sort) => {
      this.sort = sort;
      this.sorted_ms = -Infinity;
      this.sorts.choose(sort);
      this.update();
      this.heat.invalidate(true);
    });
    this.sorts.choose("worst");
    this.context = el("span", { class: "context" });
    this.heat = new Heatmap(() => this.heatModel(), { onPoint: (at, event) => this.point(at, event), onPick: (rank) => this.pick(rank), onError: (error) => this.problem.replaceChildren(failedPart("The chart library", error, () => location.reload())) });
    this.problem = el("div", {});
    this.compare = el("div", { class: "body compare" });
    this.peaks = new RankPeaks(page.id, page.session.run?.started_ns ?? 0, () => page.changed());
    this.compareTitle = el("h2", {}, "Against the median");
    this.look = el("div", { class: "body look" });
    this.act = el("div", { class: "body" });
    this.list = el("div", { class: "body rank-list", tabindex: 0 });
    this.legend = el("div", { class: "legend" });
    this.openLink = el("a", { href: page.pathOf("overview") }, "Open rank");
    this.actChoice = new Segmented("Ranks to act on", [{ value: "one", text: "Rank" }, { value: "all", text: "All" }], (value) => {
      this.actsOnAll = value === "all";
      this.update();
    });
    this.actFree = el("button", { class: "button", type: "button", click: () => page.openCommand("empty_cache") }, "Free cache…");
    this.actNote = el("p", { class: "ink2" });
    this.act.append(el("div", { class: "runs-tools" }, this.actChoice.element, el("span", { class: "spacer" }), this.actFree), this.actNote);
    this.element = el("div", { class: "ranks-grid" },
      el("div", { class: "rail" }, panel("Head-room by rank", [this.context, el("div", { class: "controls" }, this.sorts.element)], this.problem, this.heat.element, this.legend), panel("All ranks", [], this.list)),
      el("aside", { class: "rail", "aria-label": "Comparison and actions" }, el("section", { class: "panel", "aria-label": "Comparison" }, el("header", {}, this.compareTitle, el("div", { class: "controls" }, this.openLink)), this.compare), panel("Ranks that need a look", [], this.look), panel("Act on ranks", [], this.act)));
  }

  close() {
    this.heat.close();
    this.peaks.close();
  }

  /** Ranks a command would go to; null for all. */
  get actOn() {
    return this.actsOnAll ? null : this.pickedRank;
  }

  get rows() {
    return this.page.summary?.rows ?? [];
  }

  get pickedRank() {
    return this.picked ?? this.rows[0]?.rank ?? 0;
  }

  /** @param {number} rank */
  pick(rank) {
    this.picked = rank;
    this.update();
  }

  /**
   * @param {{row: import("../charts/heatmap.js").HeatRow, t: number, index: number} | null} at
   * @param {PointerEvent} event
   */
  point(at, event) {
    const run = this.page.session.run;
    const info = at && run?.ranks?.find((one) => one.rank === at.row.rank);
    if (!at || !run || !info) {
      this.heat.showChip("", null);
      return;
    }
    const share = at.row.values[at.index];
    const limit = this.rows.find((row) => row.rank === at.row.rank)?.limit;
    const left = known(share) && known(limit) ? `${sizeText(share * limit, 2)} left (${percent(share)})` : "not known";
    this.heat.showChip(`rank ${info.rank} · ${info.host} · GPU ${info.local_rank} · ${clock(run.started_ns + at.t * 1e9)} · ${left}`, event);
  }

  /** The order stays for a while, and as long as the pointer is on the chart. */
  sortRows() {
    const { rows } = this;
    const known_rows = rows.filter((row) => known(row.free)).length;
    const due = performance.now() - this.sorted_ms > RESORT_MS && !this.heat.isPointed;
    if (due || this.order.length !== rows.length || known_rows !== this.sortedRows) {
      this.sortedRows = known_rows;
      const sorted = [...rows];
      if (this.sort === "rank") sorted.sort((a, b) => a.rank - b.rank);
      if (this.sort === "host") sorted.sort((a, b) => a.info.host.localeCompare(b.info.host) || a.info.local_rank - b.info.local_rank);
      this.order = sorted.map((row) => row.rank);
      this.sorted_ms = performance.now();
    }
    const by_rank = new Map(rows.map((row) => [row.rank, row]));
    return this.order.flatMap((rank) => by_rank.get(rank) ?? []);
  }

  /** @returns {import("../charts/heatmap.js").HeatModel | null} */
  heatModel() {
    const { session } = this.page;
    const run = session.run;
    if (!run || !session.matrix) return null;
    const { t, used } = session.matrix.picture(240);
    const rowOf = (/** @type {RankRow} */ row) => ({
      rank: row.rank,
      label: this.sort === "host" ? `${row.info.host}:${row.info.local_rank}` : `rank ${row.rank}`,
      isGone: isGone(row.info),
      free: row.free,
      severity: headroomSeverity(row.free, row.limit),
      values: (used.get(row.rank) ?? []).map((bytes) => (known(bytes) && known(row.limit) ? Math.max(0, (row.limit - bytes) / row.limit) : null)),
    });
    const rows = this.sortRows();
    const outliers = this.sort === "worst" ? rows.filter((row) => row.isOutlier) : [];
    return { t, origin_ns: run.started_ns, outliers: outliers.map(rowOf), others: rows.filter((row) => !outliers.includes(row)).map(rowOf) };
  }

  update() {
    const run = this.page.session.run;
    const { rows } = this;
    if (!run || rows.length === 0) return;
    const hosts = new Set(rows.map((row) => row.info.host)).size;
    fillWhenChanged(this.context, `${hosts}/${rows.length}`, () => [`${plural(hosts, "host")} · ${plural(rows.length, "rank")} · ${run.device_name ?? "device not known"} ${sizeText(run.device_total_bytes)}`]);
    fillWhenChanged(this.legend, document.documentElement.dataset.theme ?? "system", () => {
      const { scale } = readTokens();
      return [el("span", {}, "Head-room"), ...LEGEND.map((text, i) => {
        const mark = el("i", { class: "swatch" });
        mark.style.background = scale[i];
        return el("span", {}, mark, text);
      })];
    });
    this.heat.invalidate();
    this.showCompare(rows);
    this.showLook(rows);
    this.showList(rows);
    this.showAct(rows);
  }

  /** @param {RankRow[]} rows */
  showCompare(rows) {
    const row = rows.find((one) => one.rank === this.pickedRank) ?? rows[0];
    const median = medianOf(rows.map((one) => one.peak));
    const free = medianOf(rows.map((one) => one.free));
    setAttribute(this.openLink, "href", `${this.page.pathOf("overview")}?rank=${row.rank}`);
    fillWhenChanged(this.openLink, String(row.rank), () => [`Open rank ${row.rank}`]);
    fillWhenChanged(this.compareTitle, String(row.rank), () => [`Rank ${row.rank} against the median`]);
    this.peaks.refresh(rows.map((one) => one.info));
    const own = this.peaks.peaks.get(row.rank);
    fillWhenChanged(this.compare, [row.rank, row.peak, median, this.peaks.version, document.documentElement.dataset.theme].join("/"), () =>
      compareParts({ rank: row.rank, step: own?.step ?? null, rows: this.compareRows(row), median: { used: median, free }, own: { used: row.peak, free: row.free }, limit: row.limit }));
  }

  /**
   * A rank beside the median by category; empty as long as too few ranks are known.
   * @param {RankRow} row
   */
  compareRows(row) {
    const { peaks } = this.peaks;
    const own = peaks.get(row.rank);
    return own && peaks.size * 2 > this.rows.length ? compareRows(own.state, [...peaks.values()].map((one) => one.state), row.limit) : [];
  }

  /** @param {RankRow[]} rows */
  showLook(rows) {
    const bad = rows.filter((row) => row.isOutlier || ["crit", "warn"].includes(headroomSeverity(row.free, row.limit) ?? "") || row.info.state !== "live");
    // Who is gone comes first: head-room of a process that is no more is only what it had.
    const shown = [...bad].sort((a, b) => Number(isGone(b.info)) - Number(isGone(a.info))).slice(0, 8);
    const found = new Map(presentFindings(this.page.session.store.state.findings, this.page.session.run ?? { state: "live" }).filter((one) => one.ranks.length === 1).reverse().map((one) => [one.ranks[0], one]));
    const rest = rows.filter((row) => !shown.includes(row)).map((row) => row.free).filter(known);
    const unit = tableUnit(rows[0]?.limit);
    fillWhenChanged(this.look, JSON.stringify(shown.map((row) => [row.rank, inUnit(row.free, unit), row.info.state, found.get(row.rank)?.summary])) + rest.length + "/" + this.peaks.version, () => {
      if (shown.length === 0) return [el("p", { class: "empty-line" }, `None: all ${rows.length} ranks are live, above 5 % of head-room and within 3 deviations of the median.`)];
      const lines = shown.map((row) => {
        const finding = found.get(row.rank);
        const severity = finding?.severity === "critical" ? "crit" : headroomSeverity(row.free, row.limit);
        const more = mostAbove(this.compareRows(row));
        const why = row.info.state !== "live" ? lastWords(row.info) : finding ? el("a", { href: `${this.page.pathOf("findings")}?finding=${finding.id}`, title: finding.summary }, findingTitle(finding)) : more ? `${more.layer.name.split(/ and |, /)[0]} +${sizeText(more.change)}` : row.isOutlier ? "less than the others" : "little left";
        return [el("span", { class: severity === "crit" ? "crit" : "warn" }, `${isGone(row.info) ? "✕" : "▲"} ${row.rank}`), `${row.info.host}:${row.info.local_rank}`, el("b", {}, sizeText(row.free)), why];
      });
      if (rest.length) lines.push([`${rest.length} others`, "", `${inUnit(Math.min(...rest), unit)} to ${inUnit(Math.max(...rest), unit)} ${unit.name}`, ""]);
      return [dataTable(["Rank", "GPU", ">Left", "Why"], lines, "Ranks that need a look")];
    });
  }

  /** @param {RankRow[]} rows */
  showList(rows) {
    const sorted = [...rows].sort((a, b) => a.rank - b.rank);
    const unit = tableUnit(rows[0]?.limit);
    fillWhenChanged(this.list, JSON.stringify(sorted.map((row) => [row.rank, inUnit(row.peak, unit), row.info.state, row.info.step, row.info.samples_lost, row.info.connected, this.restartsOf(row)])) + this.pickedRank, () => {
      const table = dataTable(["Rank", "Host", ">GPU", "State", ">Step", `>Used at peak, ${unit.name}`, `>Left, ${unit.name}`, ">Samples lost", "Restarts"],
        sorted.map((row) => [el("a", { href: `${this.page.pathOf("overview")}?rank=${row.rank}` }, String(row.rank)), row.info.host, String(row.info.local_rank), stateMark(row.info), count(row.info.step), inUnit(row.peak, unit), inUnit(row.free, unit), count(row.info.samples_lost), this.restartsOf(row)]), "All ranks");
      [...(table.tBodies[0]?.rows ?? [])].forEach((line, i) => line.classList.toggle("selected", sorted[i].rank === this.pickedRank));
      return [table];
    });
  }

  /** @param {RankRow} row */
  restartsOf({ info }) {
    return restartsText(info.restarts, restartedAt(info), this.page.app.clock.now_ns()) || "none";
  }

  /** @param {RankRow[]} rows */
  showAct(rows) {
    this.actChoice.label("one", `Rank ${this.pickedRank}`);
    this.actChoice.label("all", `All ${rows.length}`);
    this.actChoice.choose(this.actsOnAll ? "all" : "one");
    const allowed = rows.filter((row) => row.info.allow === "control").length;
    const { free } = this.page.actions;
    this.actFree.disabled = free.disabled;
    setAttribute(this.actFree, "title", free.disabled ? free.title : null);
    fillWhenChanged(this.actNote, String(allowed), () => [`Each rank acts at the end of its next step. ${allowed} of ${rows.length} allow control.`]);
  }
}

/** @param {import("../messages.js").Rank} rank */
function stateMark(rank) {
  const gone = isGone(rank);
  const text = gone ? lastWords(rank) : rank.connected || rank.state !== "live" ? rank.state : `${rank.state}, not connected`;
  const shape = rank.state === "live" ? (rank.connected ? "dot" : "ring") : gone ? "cross" : "square";
  return el("span", { class: "state-mark", "data-shape": shape, title: text }, el("span", { class: "dot" }), el("span", {}, text));
}
