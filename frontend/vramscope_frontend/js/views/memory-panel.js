// The panel "Memory": chart, controls, breakdown. It owns the view and nothing of the run.

import { brushFacts } from "../brush-facts.js";
import { toPixel } from "../charts/geometry.js";
import { Timeline } from "../charts/timeline.js";
import { isNamed } from "../composition.js";
import { el, setAttribute } from "../dom.js";
import { PHASE, STEP_DURATION } from "../fields.js";
import { known, sizeText } from "../format.js";
import { pictureOf, readingOf } from "../memory-model.js";
import * as moves from "../memory-view.js";
import { phaseAt, phasesWithin } from "../phases.js";
import { emptyTable, indexAt, isRolledUp } from "../series.js";
import { secondsOf } from "../within-steps.js";
import { Breakdown } from "./breakdown.js";
import { BrushBar } from "./brush-bar.js";
import { chartTable } from "./chart-table.js";
import { LineLegend } from "./line-legend.js";
import { MemoryControls } from "./memory-controls.js";
import { failedPart } from "./parts.js";
import { MOST_MULTIPLES, RankMultiples } from "./rank-multiples.js";
import { chipOf } from "./readout.js";
import { allRanksPicture } from "../ranks-model.js";

/** @typedef {import("../memory-view.js").MemoryView} MemoryView */
/** @typedef {import("../memory-model.js").Scene} Scene */
/** @typedef {import("../charts/timeline.js").TimelineModel} TimelineModel */

/**
 * What the page knows and the panel needs for one picture; null while the run is not loaded.
 * @typedef {(view: MemoryView) => (Scene & {session: import("../data/run-session.js").RunSession, ranks: number, isGone: boolean, devices: import("../messages.js").DeviceInfo[], rows: import("../ranks-model.js").RankRow[], context: string, summary: string, status: import("../messages.js").AgentStatus | null, pid: number | null, context_bytes: number | null, rangeLeadsTo: (view: MemoryView) => {link: string, snapshot: import("./brush-bar.js").BrushDoes["snapshot"], record: (() => void) | null}}) | null} SceneSource
 */

const ALL_RANKS = "Used on the device. Band: from the rank with least to the rank with most; grey line: the median; strong line: the rank with the highest peak.";

export class MemoryPanel {
  /**
   * @param {MemoryView} view
   * @param {{sceneOf: SceneSource, defaults: () => import("../memory-view.js").Defaults, onView: (view: MemoryView) => void}} page
   */
  constructor(view, { sceneOf, defaults, onView }) {
    this.view = view;
    this.sceneOf = sceneOf;
    this.defaults = defaults;
    this.onView = onView;
    /** @type {number | null} */
    this.pointed = null;
    /** @type {number | null} */
    this.pointed_py = null;
    /** @type {TimelineModel | null} */
    this.model = null;
    /** What the table shows. @type {import("../memory-model.js").Reading | null} */
    this.reading = null;
    /** Whether every byte of the last step's end has a name. */
    this.isNamed = false;
    this.showsTable = false;
    /** Over time only because no optimizer step was seen so far. */
    this.waitsForSteps = false;
    this.controls = new MemoryControls({
      onRank: (rank) => this.setView({ ...moves.follow(this.view), rank, device: null }),
      onDevice: (device) => this.setView({ ...moves.follow(this.view), device }),
      onDrawn: (drawn) => this.setView({ ...this.view, drawn }),
      onAxis: (xKind) => this.chooseAxis(xKind),
      onWindow: (window) => this.setView({ ...moves.follow(this.view), window }),
      onScale: () => this.toggleScale(),
      onFollow: () => this.setView(moves.follow(this.view)),
      onTable: () => this.toggleTable(),
    });
    this.breakdown = new Breakdown();
    this.legend = new LineLegend();
    this.chart = el("div", {});
    this.table = el("div", { class: "chart-table", hidden: true, tabindex: 0 });
    this.problem = el("div", {});
    this.aside = el("div", {}, this.breakdown.element, this.legend.element);
    this.note = el("p", { class: "envelope-note", hidden: true }, ALL_RANKS);
    this.multiples = new RankMultiples((rank) => this.setView({ ...moves.follow(this.view), rank }));
    this.body = el("div", { class: "memory-body" }, el("div", {}, this.chart, this.table, this.note, this.multiples.element), this.aside);
    this.element = el("section", { class: "panel memory", "aria-label": "Memory" }, this.controls.element, this.problem, this.body);
    this.timeline = new Timeline(this.chart, () => this.picture(), {
      onPoint: (x, py) => this.point(x, py),
      onPin: (x) => this.setView({ ...this.view, pinned: this.view.pinned === null ? x : null }),
      onZoom: (range) => this.markRange(range),
      keepsBrush: true,
      onPan: (delta) => this.setView(moves.panBy(this.view, this.range, delta, this.bounds)),
      onWheel: (factor, at) => this.setView(moves.zoomAround(this.view, this.range, factor, at, this.bounds)),
      onBack: () => this.goBack(),
      onMark: (x) => this.setView({ ...this.view, pinned: x }),
      onError: (error) => this.showProblem("The chart library", error),
    });
    this.brushBar = new BrushBar();
    this.chart.append(this.brushBar.element);
    this.controls.show(this.seen, this.defaults());
    this.showSide();
  }

  /** The view with what the reader left open. */
  get seen() {
    return moves.settled(this.view, this.defaults());
  }

  close() {
    this.timeline.close();
  }

  get source() {
    const scene = this.sceneOf(this.seen);
    return scene && (this.view.xKind === "step" ? scene.steps : scene.samples);
  }

  /** @returns {[number, number]} */
  get range() {
    return this.sceneOf(this.seen)?.range ?? [0, 1];
  }

  get bounds() {
    const scene = this.sceneOf(this.seen);
    const rows = this.source;
    const last = Math.max(rows?.x.at(-1) ?? 0, scene && !this.view.range ? scene.range[1] : 0);
    return { first: rows?.x[0] ?? 0, last: last || (this.model?.range[1] ?? 1) };
  }

  /** Steps (or seconds) between what is shown and the newest row; 0 while following. */
  get behind() {
    const last = this.source?.x.at(-1);
    return this.view.range && last !== undefined ? Math.max(0, Math.floor(last - this.view.range[1])) : 0;
  }

  /**
   * A range was dragged: what it holds, and what can be done with it.
   * @param {[number, number]} range
   */
  markRange(range) {
    const { model } = this;
    if (!model) return;
    // What is marked must not move away.
    if (this.view.range === null) this.setView(moves.panBy(this.view, model.range, 0, { first: model.range[0], last: model.range[1] }));
    const scene = this.sceneOf(this.seen);
    if (!scene) return;
    this.timeline.brush.hidden = false;
    const zoomed = moves.zoomTo(this.view, range, this.bounds);
    this.brushBar.open(brushFacts(model, scene.steps, range), { ...scene.rangeLeadsTo({ ...this.seen, range: zoomed.range }), zoom: () => this.setView(zoomed), close: () => this.unmark() });
    const { geometry } = this.timeline;
    this.brushBar.place(toPixel(geometry, model.range, range[1]), geometry.mainTop + 8, this.chart.clientWidth);
  }

  /** Take the marked range away; whether there was one. */
  unmark() {
    const was = this.brushBar.isOpen;
    this.brushBar.close();
    this.timeline.brush.hidden = true;
    if (was) this.timeline.surface.focus({ preventScroll: true });
    return was;
  }

  /** @param {MemoryView} view */
  setView(view) {
    this.unmark();
    this.view = view;
    this.onView(view);
    this.controls.show(this.seen, this.defaults());
    this.changed(true);
  }

  /** @param {MemoryView["xKind"]} xKind */
  chooseAxis(xKind) {
    this.waitsForSteps = false;
    this.setView(moves.changeAxis(this.view, xKind, this.sceneOf(this.seen)?.steps ?? emptyTable([])));
  }

  /**
   * A job without a step so far is shown over time; the address stays that of the chosen axis.
   * @param {boolean} hasSteps
   */
  showSteps(hasSteps) {
    this.controls.offerSteps(hasSteps);
    if (hasSteps ? !this.waitsForSteps : this.view.xKind === "time") return;
    this.waitsForSteps = !hasSteps;
    /** @type {MemoryView["xKind"]} */
    const xKind = hasSteps ? "step" : "time";
    this.view = { ...moves.follow(this.view), xKind };
    this.controls.show(this.seen, this.defaults());
    this.changed(true);
  }

  /**
   * Rows or state changed.
   * @param {boolean} [urgent] by the reader's own hand
   */
  changed(urgent = false) {
    this.timeline.invalidate(urgent);
    if (urgent && this.model) this.showReadout();
  }

  themeChanged() {
    this.breakdown.themeChanged();
    this.legend.themeChanged();
    this.timeline.themeChanged();
  }

  /** @returns {TimelineModel | null} */
  picture() {
    const scene = this.sceneOf(this.seen);
    if (!scene) return null;
    if (this.view.rank === null && scene.session.matrix) {
      this.model = allRanksPicture(scene, scene.session.matrix);
      this.showMultiples(scene, scene.session.matrix);
    } else {
      this.model = pictureOf(scene, null).model;
      const { rankData } = scene.session;
      const width_px = this.timeline.geometry.width;
      rankData?.refine(this.view.xKind === "step" ? "steps" : "samples", scene.range[0], scene.range[1], width_px);
      const seconds = this.view.xKind === "step" && this.view.range ? secondsOf(scene.steps, scene.range) : null;
      if (seconds) rankData?.refine("samples", seconds[0], seconds[1], width_px);
    }
    this.controls.show(this.seen, this.defaults());
    this.controls.showRun(scene.context, scene.ranks, this.view, scene.session.run?.state === "live" && !scene.isGone, scene.devices);
    this.showReadout();
    if (this.showsTable) this.fillTable(this.model);
    setAttribute(this.timeline.figure, "aria-label", scene.summary);
    const error = scene.session.rankData?.error;
    if (error) this.showProblem("History", error, () => void scene.session.rankData?.load());
    else this.problem.replaceChildren();
    return this.model;
  }

  /**
   * @param {number | null} x
   * @param {number | null} py
   */
  point(x, py) {
    this.pointed = x;
    this.pointed_py = py;
    this.showReadout();
  }

  /** Table and chip at the cursor, or at the end of the run without one. */
  showReadout() {
    const { model } = this;
    const scene = this.sceneOf(this.seen);
    if (!model || !scene) return;
    const cursor = this.pointed ?? this.view.pinned;
    this.showSide();
    const reading = this.view.rank === null ? null : readingOf({ ...scene, range: model.range }, cursor);
    this.reading = reading;
    if (cursor === null && this.view.range === null) this.isNamed = reading !== null && this.view.xKind === "step" && isNamed(reading.end);
    const phase = cursor === null ? null : phaseOf(scene, this.view, cursor);
    if (this.view.drawn === "composition") {
      this.breakdown.accuse(model.accused);
      this.breakdown.show(reading, model.unit, this.view.xKind === "step", phase);
      this.breakdown.showOutside(scene.status, scene.pid, scene.context_bytes, model.unit);
    }
    else this.legend.show(model, cursor, cursor !== null && reading ? reading.endLabel : this.view.xKind === "step" ? "Last step" : "Latest");
    this.timeline.showCursor(cursor, cursor === null || this.brushBar.isOpen ? [] : chipOf({ cursor, reading, model, phase, byStep: this.view.xKind === "step", height_bytes: this.pointed === null ? null : this.timeline.bytesAt(this.pointed_py ?? 0) }), this.pointed === null ? null : this.pointed_py);
    setAttribute(this.timeline.surface, "aria-valuenow", cursor === null ? Math.round(model.range[1]) : Math.round(cursor));
    setAttribute(this.timeline.surface, "aria-valuetext", reading ? `${reading.endLabel}: allocated ${sizeText(reading.end.allocated)}, reserved ${sizeText(reading.end.reserved)}` : null);
  }

  /**
   * @param {NonNullable<ReturnType<SceneSource>>} scene
   * @param {import("../data/rank-matrix.js").RankMatrix} matrix
   */
  showMultiples({ rows, range, evidence = null }, matrix) {
    const isFew = rows.length > 1 && rows.length <= MOST_MULTIPLES;
    this.multiples.element.hidden = !isFew;
    this.chart.classList.toggle("above-multiples", isFew);
    if (isFew) this.multiples.show(rows, matrix, range, evidence);
  }

  /** The table that belongs to what is drawn; all ranks together have none. */
  showSide() {
    const all = this.view.rank === null;
    this.aside.hidden = all;
    this.note.hidden = !all;
    if (!all) {
      this.multiples.element.hidden = true;
      this.chart.classList.remove("above-multiples");
    }
    this.body.style.gridTemplateColumns = all ? "minmax(0, 1fr)" : "";
    this.breakdown.element.hidden = all || this.view.drawn !== "composition";
    this.legend.element.hidden = all || this.view.drawn !== "lines";
  }

  toggleTable() {
    this.showsTable = !this.showsTable;
    this.table.hidden = !this.showsTable;
    this.chart.hidden = this.showsTable;
    this.controls.showTable(this.showsTable);
    if (this.showsTable && this.model) this.fillTable(this.model);
    else this.timeline.invalidate(true);
  }

  /** @param {TimelineModel} model */
  fillTable(model) {
    this.table.replaceChildren(chartTable(model));
  }

  /**
   * @param {string} what
   * @param {Error} error
   * @param {() => void} [retry]
   */
  showProblem(what, error, retry = () => location.reload()) {
    this.problem.replaceChildren(failedPart(what, error, retry));
  }

  /**
   * Move the cursor by rows; the first press puts it at the newest row.
   * @param {number} rows
   */
  moveCursor(rows) {
    const xs = this.source?.x;
    const { model } = this;
    if (!xs?.length || !model) return;
    const at = this.view.pinned === null ? indexAt(xs, model.range[1]) : indexAt(xs, this.view.pinned) + rows;
    const pinned = xs[Math.max(0, Math.min(xs.length - 1, at))];
    const next = { ...this.view, pinned };
    // A cursor that leaves the picture takes the picture along.
    this.setView(pinned < model.range[0] || pinned > model.range[1] ? moves.panBy(next, model.range, pinned - (model.range[0] + model.range[1]) / 2, this.bounds) : next);
  }

  showWholeRun() {
    this.setView({ ...moves.follow(this.view), window: "run" });
  }

  goBack() {
    this.setView(moves.back(this.view));
  }

  toggleScale() {
    this.setView({ ...this.view, y: this.seen.y === "moving" ? "full" : "moving" });
  }

  /** What a finding says, in the picture: since when, how fast, until when. */
  showEvidence() {
    this.setView({ ...moves.follow(this.view), y: "moving", window: this.defaults().window === "forecast" ? "forecast" : "run" });
    this.element.scrollIntoView({ block: "nearest" });
    this.timeline.evidence.pulse();
  }

  /** Put the cursor on the highest row that is shown. */
  goToPeak() {
    const scene = this.sceneOf(this.seen);
    const reading = scene && this.view.rank !== null ? readingOf(scene, null) : null;
    if (reading) this.setView({ ...this.view, pinned: reading.peakX });
  }
}

/**
 * What the rank was doing at the cursor: at that moment, or between the end of the step before and
 * the end of this one.
 * @param {NonNullable<ReturnType<SceneSource>>} scene
 * @param {MemoryView} view
 * @param {number} cursor
 * @returns {string | null}
 */
function phaseOf({ session, steps, samples, origin_ns }, view, cursor) {
  const stretches = session.phases.of(view.rank ?? session.firstRank);
  const codes = samples.columns[PHASE] ?? [];
  const at_ns = (/** @type {number} */ t) => origin_ns + t * 1e9;
  if (view.xKind === "time" || view.rank === null) {
    const index = indexAt(samples.x, cursor);
    return phaseAt(stretches, at_ns(cursor), index < 0 || isRolledUp(samples, index) ? null : codes[index]);
  }
  const index = indexAt(steps.x, Math.round(cursor));
  const took_us = steps.columns[STEP_DURATION]?.[index];
  const from_t = known(took_us) ? steps.t[index] - took_us / 1e6 : steps.t[index - 1];
  return known(from_t) ? phasesWithin(stretches, at_ns(from_t), at_ns(steps.t[index]), codes.some(known)) : null;
}
