// Everything that is known about one rank over time: fetched, followed, refined on demand.

import { api } from "../api.js";
import { LIVE_POINTS, pointsWanted } from "../downsampling.js";
import { plainColumns, SAMPLE_FIELDS, sampleFieldsOf, STEP, STEP_FIELDS } from "../fields.js";
import { piecesOf, stretchesOf } from "../numbering.js";
import { emptyTable, LIFE, stepColumns, tableFromSeries, tableFromSteps, xAtTime } from "../series.js";
import { highMoments } from "../high-moments.js";
import { LayeredTable } from "./layered-table.js";

/** @typedef {import("../messages.js").SamplesEvent} SamplesEvent */
/** @typedef {import("../messages.js").StepsEvent} StepsEvent */
/** @typedef {"steps" | "samples"} Kind */
/** @typedef {import("../series.js").Table} Table */
/** The highest moments of a table, and what they were made of. @typedef {{key: string, of: {steps: Table, first: number | undefined, coarse: Table, detail: unknown}, table: Table}} Highs */

const RECENT_S = 600;
/** 12 minutes at 10 Hz, and as many steps. */
const RECENT_ROWS = 7200;
const REFINE_AFTER_MS = 120;
const RELOAD_AFTER_MS = 15_000;
/** The server answers from what is committed, up to a second behind what it sends live. */
const SEAM_AFTER_MS = 1500;
/** After a refusal: a live run is redrawn four times a second and would ask each time. */
const REST_AFTER_ERROR_MS = 5000;

export class RankData {
  /**
   * @param {string} run
   * @param {number} rank
   * @param {number} origin_ns start of the run: 0 of the time axis
   * @param {() => void} onChange
   * @param {number | null} [device] one beside the device that is watched in full: of that there are samples only
   */
  constructor(run, rank, origin_ns, onChange, device = null) {
    this.run = run;
    this.rank = rank;
    this.device = device;
    this.origin_ns = origin_ns;
    this.onChange = onChange;
    this.steps = new LayeredTable(stepColumns(STEP_FIELDS), RECENT_ROWS);
    this.samples = new LayeredTable(SAMPLE_FIELDS, RECENT_ROWS);
    this.loaded = false;
    /** @type {Error | null} */
    this.error = null;
    this.closing = new AbortController();
    /** @type {{abort: AbortController, kind: Kind, x0: number, x1: number} | null} */
    this.refining = null;
    this.refine_timer = 0;
    this.failed_ms = -Infinity;
    this.reloaded_ms = 0;
    /** False while rows between the fetched and the live ones may still be on their way. */
    this.isWhole = true;
    this.hearsLive = false;
    this.seam_timer = 0;
    /** Newest rows that were fetched: place on the axis of steps, and seconds of the sample. */
    this.fetched = { step: 0, t: 0 };
    /** What the step numbers of each life are shifted by on the axis. @type {Map<number, number>} */
    this.offsets = new Map();
    /** @type {Highs | null} */
    this.recentHighs = null;
    /** @type {Highs | null} */
    this.wholeHighs = null;
  }

  close() {
    clearTimeout(this.refine_timer);
    clearTimeout(this.seam_timer);
    this.closing.abort();
    this.refining?.abort.abort();
  }

  /** Fetch the whole run coarsely, then its newest minutes as finely as they can be shown. */
  async load() {
    const { signal } = this.closing;
    this.error = null;
    this.reloaded_ms = performance.now();
    this.isWhole = false;
    try {
      const [steps, samples] = await Promise.all([this.fetchSteps(null, null, LIVE_POINTS, signal), this.fetchSamples(null, null, LIVE_POINTS, signal)]);
      this.steps.setCoarse(steps);
      this.samples.setCoarse(samples);
      this.fetched = { step: steps.x.at(-1) ?? 0, t: samples.x.at(-1) ?? 0 };
      this.loaded = true;
      this.onChange();
      await this.loadRecent(signal);
      this.planSeam();
      this.onChange();
    } catch (error) {
      if (signal.aborted) return;
      this.error = /** @type {Error} */ (error);
      this.isWhole = true;
      this.onChange();
    }
  }

  /** Once both are there: fetch what lies between the history and the first live row. */
  planSeam() {
    if (!this.loaded || this.isWhole || !this.hearsLive || this.seam_timer) return;
    this.seam_timer = window.setTimeout(() => void this.closeSeam(), SEAM_AFTER_MS);
  }

  async closeSeam() {
    const { signal } = this.closing;
    try {
      const [steps, samples] = await Promise.all([this.fetchSteps(this.fetched.step, null, 2000, signal), this.fetchSamples(this.fetched.t, null, 2000, signal)]);
      this.steps.close(steps);
      this.samples.close(samples);
    } catch (error) {
      if (signal.aborted) return;
      // The hole stays and is drawn as one; the reason is shown beside it.
      this.error = /** @type {Error} */ (error);
    }
    this.seam_timer = 0;
    this.isWhole = true;
    this.onChange();
  }

  /**
   * The highest known moment of each step from `x0` on; rows are those of `steps.view(x0)`.
   * @param {number} x0
   * @returns {import("../series.js").Table}
   */
  high(x0) {
    const steps = this.steps.view(x0);
    const key = `${this.steps.version}/${this.samples.version}`;
    const isRecent = steps === this.steps.recent;
    const highs = isRecent ? this.recentHighs : this.wholeHighs;
    if (highs?.key === key) return highs.table;
    // Rows that only grew need their newest ones looked at: a run of hours has thousands.
    const of = { steps, first: steps.x[0], coarse: this.samples.coarse, detail: this.samples.detail };
    const grew = highs !== null && isRecent && highs.of.steps === steps && highs.of.first === of.first && highs.of.coarse === of.coarse && highs.of.detail === of.detail;
    const made = { key, of, table: highMoments(steps, this.samples.whole(), grew ? highs.table : null) };
    if (isRecent) this.recentHighs = made;
    else this.wholeHighs = made;
    return made.table;
  }

  /** After a cut of the feed: fetch what came in between. */
  async reload() {
    this.steps.forgetRecent();
    this.samples.forgetRecent();
    await this.load();
  }

  /** @param {AbortSignal} signal */
  async loadRecent(signal) {
    const from_t = Math.max(this.steps.coarse.t.at(-1) ?? 0, this.samples.last) - RECENT_S;
    const wanted = [];
    if (this.steps.coarse.binWidth > 0) {
      const start = Math.floor(xAtTime(this.steps.coarse, from_t));
      wanted.push(this.fetchSteps(start, null, 2000, signal).then((table) => this.steps.setRecent(table)));
    }
    if (this.samples.coarse.binWidth > 0) {
      wanted.push(this.fetchSamples(from_t, null, 2000, signal).then((table) => this.samples.setRecent(table)));
    }
    await Promise.all(wanted);
  }

  /** The lives of this rank on the axis of steps, also those that have no row here yet. */
  get stretches() {
    const found = stretchesOf(this.steps.whole());
    const newest = found.at(-1)?.life ?? -1;
    const more = [...this.offsets].filter(([life]) => life > newest).sort(([a], [b]) => a - b);
    return [...found, ...more.map(([life, offset]) => ({ x: offset + 1, life, offset }))];
  }

  /**
   * @param {number | null} x0
   * @param {number | null} x1
   * @param {number} points
   * @param {AbortSignal} signal
   */
  async fetchSteps(x0, x1, points, signal) {
    if (this.device !== null) return emptyTable(stepColumns(STEP_FIELDS));
    const wanted = { fields: STEP_FIELDS, rank: this.rank, points };
    const whole = x0 === null && x1 === null;
    const pieces = whole || this.offsets.size < 2 ? [] : piecesOf(this.stretches, x0, x1);
    const first = this.offsets.values().next().value ?? 0;
    const payloads = await Promise.all(pieces.length
      ? pieces.map((piece) => api.steps(this.run, { ...wanted, ...piece }, signal))
      : [api.steps(this.run, { ...wanted, start: x0 === null ? null : x0 - first, end: x1 === null ? null : x1 - first }, signal)]);
    if (this.takeOffsets(payloads.at(-1)?.step_offsets ?? []) && !whole) void this.reload();
    return tableFromSteps(joined(payloads), STEP_FIELDS, this.origin_ns, points);
  }

  /**
   * @param {number | null} from_t
   * @param {number | null} to_t
   * @param {number} points
   * @param {AbortSignal} signal
   */
  async fetchSamples(from_t, to_t, points, signal) {
    const at = (/** @type {number | null} */ t) => (t === null ? null : this.origin_ns + t * 1e9);
    const payload = await api.series(this.run, { fields: sampleFieldsOf(this.device), rank: this.rank, start_ns: at(from_t), end_ns: at(to_t), points }, signal);
    return tableFromSeries({ ...payload, columns: plainColumns(payload.columns, this.device) }, SAMPLE_FIELDS, this.origin_ns);
  }

  /**
   * Note where the lives lie. True when one that has rows moved: the life before it turned out to be
   * longer, since what it had left came late.
   * @param {(number | undefined)[]} offsets by life
   */
  takeOffsets(offsets) {
    let moved = false;
    offsets.forEach((offset, life) => {
      if (offset === undefined) return;
      const before = this.offsets.get(life);
      moved ||= before !== undefined && before !== offset && this.stretches.some((one) => one.life === life);
      this.offsets.set(life, offset);
    });
    return moved;
  }

  /** @param {StepsEvent} event */
  takeSteps(event) {
    if (this.device !== null) return;
    const { life = 0, step_offset = 0 } = event;
    const offsets = [];
    offsets[life] = step_offset;
    if (this.takeOffsets(offsets)) {
      void this.reload();
      return;
    }
    this.steps.addLive(event.step.map((step) => step + step_offset), event.time_ns.map((ns) => (ns - this.origin_ns) / 1e9), { ...event.columns, [STEP]: event.step, [LIFE]: event.step.map(() => life) });
    this.heard(this.steps);
    this.onChange();
  }

  /** @param {SamplesEvent} event */
  takeSamples(event) {
    const t = event.time_ns.map((ns) => (ns - this.origin_ns) / 1e9);
    this.samples.addLive(t, t, plainColumns(event.columns, this.device));
    this.heard(this.samples);
    this.onChange();
  }

  /** @param {LayeredTable} table */
  heard(table) {
    this.hearsLive = true;
    this.planSeam();
    if (!this.loaded || !table.isTorn || performance.now() - this.reloaded_ms < RELOAD_AFTER_MS) return;
    void this.load();
  }

  /**
   * Ask for a finer answer to what is shown, once the range has come to rest.
   * @param {Kind} kind
   * @param {number} x0
   * @param {number} x1
   * @param {number} width_px
   */
  refine(kind, x0, x1, width_px) {
    const range = this[kind].rangeToRefine(x0, x1, width_px);
    if (!range || !this.loaded || performance.now() - this.failed_ms < REST_AFTER_ERROR_MS) return;
    // A live run is redrawn several times while one answer is on its way: let it arrive.
    const { refining } = this;
    if (refining && refining.kind === kind && refining.x0 <= range.x0 && refining.x1 >= range.x1 && (refining.x1 - refining.x0) < 2 * (range.x1 - range.x0)) return;
    clearTimeout(this.refine_timer);
    this.refine_timer = window.setTimeout(() => void this.fetchDetail(kind, range, width_px), REFINE_AFTER_MS);
  }

  /**
   * @param {Kind} kind
   * @param {{x0: number, x1: number}} range
   * @param {number} width_px
   */
  async fetchDetail(kind, range, width_px) {
    this.refining?.abort.abort();
    // Some more on either side, so that a small pan does not ask again.
    const margin = (range.x1 - range.x0) * 0.1;
    const x0 = range.x0 - margin;
    const x1 = range.x1 + margin;
    const refining = { abort: new AbortController(), kind, x0, x1 };
    this.refining = refining;
    const points = pointsWanted(width_px * 1.2);
    try {
      const table = kind === "steps"
        ? await this.fetchSteps(Math.max(0, Math.floor(x0)), Math.ceil(x1), points, refining.abort.signal)
        : await this.fetchSamples(Math.max(0, x0), x1, points, refining.abort.signal);
      this[kind].setDetail(x0, x1, table);
      this.error = null;
    } catch (error) {
      if (refining.abort.signal.aborted) return;
      // The coarse rows stay on the screen; the reason is shown beside them.
      this.error = /** @type {Error} */ (error);
      this.failed_ms = performance.now();
    }
    this.refining = null;
    this.onChange();
  }
}

/**
 * Answers for one life after the other as one.
 * @param {import("../messages.js").StepsPayload[]} payloads
 * @returns {import("../messages.js").StepsPayload}
 */
function joined(payloads) {
  const [first] = payloads;
  if (payloads.length === 1) return first;
  /** @type {import("../messages.js").Columns} */
  const columns = {};
  for (const name in first.columns) columns[name] = payloads.flatMap((one) => one.columns[name] ?? one.step.map(() => null));
  return {
    step: payloads.flatMap((one) => one.step),
    time_ns: payloads.flatMap((one) => one.time_ns),
    life: payloads.flatMap((one) => one.life ?? one.step.map(() => 0)),
    step_offsets: payloads.at(-1)?.step_offsets,
    columns,
  };
}
