// One snapshot: who holds the memory at that moment?

import { api, ApiError } from "../api.js";
import { Recording } from "../data/recording.js";
import { el } from "../dom.js";
import { known, plural, sizeText } from "../format.js";
import { momentSecond, momentSentence } from "../snapshots/moment-verdict.js";
import { explorerFromQuery, queryFromExplorer, shifted, withinShown, zoomed } from "../snapshots/explorer-view.js";
import { highestIn, indexOfMoment, lastBefore, stepIndexAt, stepRange } from "../snapshots/recording-steps.js";
import { stateText } from "../snapshots/snapshot-words.js";
import { GrowthPanel } from "./growth-panel.js";
import { HeldPanel } from "./held-panel.js";
import { RecordingPanel } from "./recording-panel.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../snapshots/explorer-view.js").ExplorerView} ExplorerView */

const SETTLED_MS = 80;
const ZOOMED_MS = 120;
const WHEEL_MS = 400;

export class Snapshot {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.id = page.snapshot ?? "";
    this.view = explorerFromQuery(page.app.router.place.view);
    this.comparesEnds = page.app.router.place.view.get("compare") === "ends";
    this.data = new Recording(this.id, () => this.dataChanged());
    /** @type {[number, number][]} */
    this.before = [];
    /** Of which moment the tree is drawn. */
    /** @type {import("../messages.js").MomentPayload | null} */
    this.drawn = null;
    this.heard = page.session.snapshotNews;
    this.remembered_ms = -Infinity;
    /** What the next timeline is to put the cursor on: the highest moment of a range. */
    /** @type {[number, number] | null} */
    this.wantedRange = null;
    this.timers = { moment: 0, timeline: 0 };
    this.growth = new GrowthPanel(this);
    this.recording = new RecordingPanel(this);
    this.held = new HeldPanel(this);
    const back = el("p", { class: "crumb" }, el("a", { href: page.pathOf("snapshots") }, "All snapshots of this run"));
    this.element = el("div", { class: "rail one" }, this.recording.element, this.growth.element, this.held.element, back);
    void this.open();
  }

  close() {
    clearTimeout(this.timers.moment);
    clearTimeout(this.timers.timeline);
    this.data.close();
    this.growth.close();
    this.recording.close();
    this.held.close();
  }

  get pickleAddress() {
    return api.pickleAddress(this.id);
  }

  get info() {
    return this.data.info;
  }

  get timeline() {
    return this.data.timeline;
  }

  get moment() {
    return this.data.moment;
  }

  get error() {
    return this.data.error;
  }

  get momentError() {
    return this.data.momentError;
  }

  get facts() {
    return this.data.facts;
  }

  get whole() {
    return this.data.whole;
  }

  get range() {
    return this.data.rangeOf(this.view);
  }

  /** Times along the axis count from its left end. */
  get origin() {
    return Math.round(this.range[0]);
  }

  get cursorMoment() {
    const { timeline } = this;
    if (this.view.at === null) return timeline?.window_peak ?? this.facts?.peak ?? -1;
    // What is read at the cursor, in words, in rows and in the tree, is of one moment: one that is shown.
    return timeline?.has_history ? withinShown(this.view.at, timeline.moments) : this.view.at;
  }

  get cursorIndex() {
    return this.timeline ? indexOfMoment(this.timeline.moments, this.cursorMoment) : 0;
  }

  get cursorX() {
    return this.timeline && this.timeline.x.length ? this.timeline.x[this.cursorIndex] : null;
  }

  /** @returns {import("../verdict.js").Verdict | null} */
  get verdict() {
    const { info, moment, error, momentError } = this;
    if (info && info.state !== "complete") {
      const isComing = info.state === "receiving";
      return { severity: isComing ? "quiet" : "warn", key: `snapshot-${info.state}`, sentence: isComing ? "This snapshot is still arriving." : "This snapshot did not arrive whole.", second: isComing ? `${sizeText(info.received_bytes)} of it are here${known(info.wire_bytes) ? `, of ${sizeText(info.wire_bytes)}` : ""}.` : (stateText(info) ?? "") };
    }
    if (error) return { severity: "warn", key: "snapshot-error", sentence: !info && error instanceof ApiError && error.status === 404 ? "There is no such snapshot." : "This snapshot cannot be opened.", second: error.message };
    if (!moment && momentError) return { severity: "warn", key: "snapshot-error", sentence: "This moment cannot be read.", second: momentError.message };
    if (!info || !moment) return { severity: "quiet", key: "snapshot-opening", sentence: "Opening the snapshot…", second: "It is read once; what is asked about it then comes at once." };
    return { severity: "info", key: `snapshot-${moment.moment}`, sentence: momentSentence(moment), second: momentSecond(info, moment, this.shownText()) };
  }

  shownText() {
    const { timeline } = this;
    if (!timeline || !timeline.has_history) return "";
    const [from, to] = this.range;
    if (from <= this.whole[0] && to >= this.whole[1]) return "all of it shown";
    const isTail = to >= this.whole[1];
    // The last step may end a little after the last event.
    const seen = timeline.steps.filter((step) => step.x > from && (isTail || step.x <= to)).length;
    const last = timeline.steps.at(-1)?.x ?? 0;
    const goesOn = isTail && this.whole[1] - last > 0.02 * (to - from) ? " and what followed" : "";
    return seen > 0 ? `${isTail ? "the last " : ""}${isTail && seen === 1 ? "step" : plural(seen, "step")}${goesOn} shown` : "a part of it shown";
  }

  async open() {
    await this.data.open(this.view);
    const rank = this.info?.rank ?? null;
    // Of the other ranks nobody has asked yet what they were doing.
    if (rank !== null && rank !== this.page.session.firstRank) void this.page.session.loadPhases(rank);
    void this.data.loadRows();
    if (this.comparesEnds && this.timeline) {
      this.comparesEnds = false;
      this.growth.compareEnds(this.range);
      this.page.app.router.note({ compare: null });
    }
    if (this.timeline) await this.loadMoment();
  }

  reload() {
    void this.open();
  }

  async loadTimeline() {
    await this.data.loadWindow(this.view);
    if (this.wantedRange && this.timeline) {
      const index = highestIn(this.timeline, this.wantedRange);
      if (index >= 0) this.view = { ...this.view, at: this.timeline.moments[index] };
      this.wantedRange = null;
    }
    await this.loadMoment();
  }

  async loadMoment() {
    await this.data.loadMoment(this.cursorMoment, this.view);
  }

  dataChanged() {
    if (this.moment && this.moment !== this.drawn) {
      this.held.momentChanged(this.drawn, this.moment);
      this.drawn = this.moment;
    }
    this.page.changed();
    this.recording.chart.invalidate();
  }

  /** @param {Partial<ExplorerView>} changes */
  setView(changes) {
    const before = this.view;
    this.view = { ...before, ...changes };
    this.page.app.router.note(queryFromExplorer(this.view));
    const ranged = before.range?.join() !== this.view.range?.join();
    if (before.by !== this.view.by) void this.loadTimeline();
    else if (ranged) {
      clearTimeout(this.timers.timeline);
      this.timers.timeline = window.setTimeout(() => void this.loadTimeline(), ZOOMED_MS);
    }
    if (before.at !== this.view.at || before.fold !== this.view.fold) {
      clearTimeout(this.timers.moment);
      this.timers.moment = window.setTimeout(() => void this.loadMoment(), SETTLED_MS);
      this.growth.cursorMoved();
    }
    if (this.view.drawn === "icicle") this.held.icicle.invalidate();
    this.recording.chart.invalidate();
    this.update();
  }

  /** @param {number} device */
  setDevice(device) {
    this.view = { ...this.view, device, range: null, at: null };
    this.page.app.router.note(queryFromExplorer(this.view));
    this.before = [];
    void this.open().then(() => this.growth.deviceChanged());
  }

  /** @param {number} x */
  setCursor(x) {
    if (this.timeline) this.setView({ at: this.timeline.moments[lastBefore(this.timeline.x, x)] });
  }

  /** @param {number} by */
  moveCursor(by) {
    if (!this.timeline) return;
    const index = Math.min(this.timeline.moments.length - 1, Math.max(0, this.cursorIndex + by));
    this.setView({ at: this.timeline.moments[index] });
  }

  /** @param {-1 | 1} by */
  moveStep(by) {
    const { timeline } = this;
    if (!timeline || this.cursorX === null || timeline.steps.length === 0) return;
    const index = stepIndexAt(timeline.steps, this.cursorX) + by;
    if (index < 0 || index > timeline.steps.length) return;
    const wanted = stepRange(timeline.steps, index, this.whole);
    const [from, to] = this.range;
    if (wanted[0] >= from && wanted[1] <= to) {
      const best = highestIn(timeline, wanted);
      if (best >= 0) this.setView({ at: timeline.moments[best] });
      return;
    }
    this.wantedRange = wanted;
    const delta = wanted[0] < from ? wanted[0] - from : wanted[1] - to;
    const span = Math.max(to - from, wanted[1] - wanted[0]);
    this.zoomTo(shifted([from, from + span], wanted[0] < from ? delta : delta - (span - (to - from)), this.whole));
  }

  goToPeak() {
    const { timeline } = this;
    if (!timeline) return;
    if (timeline.moments.includes(timeline.peak)) this.setView({ at: timeline.peak });
    else {
      this.setView({ at: timeline.peak });
      this.showWhole();
    }
  }

  /** @param {[number, number]} range */
  zoomTo(range) {
    this.remember();
    this.setView({ range: this.clamped(range) });
  }

  /** For going back: many turns of the wheel are one change. */
  remember() {
    if (performance.now() - this.remembered_ms > WHEEL_MS) this.before = [...this.before, this.range].slice(-50);
    this.remembered_ms = performance.now();
  }

  /**
   * @param {[number, number]} range
   * @returns {[number, number]}
   */
  clamped([from, to]) {
    const least = this.timeline?.unit === "entry" ? 8 : 50;
    return zoomed([from, Math.max(to, from + 1)], 1, from, this.whole, least);
  }

  /**
   * @param {number} factor
   * @param {number} at
   */
  zoomBy(factor, at) {
    const least = this.timeline?.unit === "entry" ? 8 : 50;
    this.remember();
    this.setView({ range: zoomed(this.range, factor, at, this.whole, least) });
  }

  /** @param {number} delta */
  pan(delta) {
    this.setView({ range: shifted(this.range, delta, this.whole) });
  }

  showWhole() {
    if (this.range.join() !== this.whole.join()) this.zoomTo(this.whole);
  }

  goBack() {
    const range = this.before.pop();
    if (range) this.setView({ range });
    else this.setView({ range: null });
  }

  /** @param {string} key */
  onKey(key) {
    const middle = (this.range[0] + this.range[1]) / 2;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.moveCursor(-1),
      ArrowRight: () => this.moveCursor(1),
      "Shift+ArrowLeft": () => this.moveCursor(-10),
      "Shift+ArrowRight": () => this.moveCursor(10),
      "[": () => this.moveStep(-1),
      "]": () => this.moveStep(1),
      "+": () => this.zoomBy(0.5, this.cursorX ?? middle),
      "=": () => this.zoomBy(0.5, this.cursorX ?? middle),
      "-": () => this.zoomBy(2, this.cursorX ?? middle),
      0: () => this.showWhole(),
      p: () => this.goToPeak(),
      l: () => this.setView({ drawn: this.view.drawn === "icicle" ? "table" : "icicle" }),
      Backspace: () => this.goBack(),
    };
    if (key === "Escape") return this.held.up();
    if (!keys[key] || !this.timeline?.has_history) return false;
    keys[key]();
    return true;
  }

  themeChanged() {
    this.recording.chart.invalidate();
    this.held.icicle.invalidate();
  }

  update() {
    if (this.page.session.snapshotNews !== this.heard) {
      this.heard = this.page.session.snapshotNews;
      if (this.info && this.info.state !== "complete") this.reload();
    }
    this.recording.update();
    this.growth.update();
    this.held.update();
  }
}
