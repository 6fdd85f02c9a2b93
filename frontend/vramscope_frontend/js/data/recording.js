// One stored snapshot as its page reads it: what is known of it, the timeline of a window, a moment.

import { api } from "../api.js";
import { STEP_FIELDS } from "../fields.js";
import { tableFromSteps } from "../series.js";
import { withinWhole } from "../snapshots/explorer-view.js";
import { firstRange } from "../snapshots/recording-steps.js";

/** @typedef {import("../messages.js").RecordingTimeline} RecordingTimeline */
/** @typedef {import("../snapshots/explorer-view.js").ExplorerView} ExplorerView */

export class Recording {
  /**
   * @param {string} id
   * @param {() => void} onChange
   */
  constructor(id, onChange) {
    this.id = id;
    this.onChange = onChange;
    /** @type {import("../messages.js").SnapshotInfo | null} */
    this.info = null;
    /** @type {RecordingTimeline | null} */
    this.timeline = null;
    /** @type {import("../messages.js").MomentPayload | null} */
    this.moment = null;
    /** @type {Error | null} */
    this.error = null;
    /** @type {Error | null} */
    this.momentError = null;
    /** @type {[number, number]} */
    this.whole = [0, 1];
    /** What is shown at first, null for all of it. @type {[number, number] | null} */
    this.first = null;
    /** What the run tells of the steps that were recorded. @type {import("../series.js").Table | null} */
    this.rows = null;
    this.asking = new AbortController();
    this.askingMoment = new AbortController();
  }

  close() {
    this.asking.abort();
    this.askingMoment.abort();
  }

  get facts() {
    return this.timeline ?? this.moment;
  }

  /**
   * What is shown of it.
   * @param {ExplorerView} view
   * @returns {[number, number]}
   */
  rangeOf(view) {
    return withinWhole(view.range, this.whole) ?? this.first ?? this.whole;
  }

  /**
   * Begin anew: what is known of the snapshot, then the window that is looked at.
   * @param {ExplorerView} view
   */
  async open(view) {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.error = null;
    try {
      this.info = await api.snapshot(this.id, signal);
      if (this.info.state === "complete") {
        const whole = await api.timeline(this.id, { by: view.by, device: view.device }, signal);
        this.whole = [whole.start, Math.max(whole.end_x, whole.start + 1)];
        this.first = firstRange(whole.steps, this.whole);
        this.timeline = whole;
        if (whole.has_history && (view.range || this.first)) await this.askWindow(view, signal);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.error = /** @type {Error} */ (error);
    }
    this.onChange();
  }

  /** The steps that were recorded, as the run tells of them: into which parts they were split. */
  async loadRows() {
    const { info, timeline } = this;
    const numbers = (timeline?.steps ?? []).flatMap(({ step }) => (step === null ? [] : [step]));
    if (!info?.run || info.rank === null || numbers.length === 0) return;
    try {
      const points = Math.max(2, numbers[numbers.length - 1] - numbers[0] + 1);
      const payload = await api.steps(info.run, { fields: STEP_FIELDS, rank: info.rank, start: numbers[0], end: numbers[numbers.length - 1], points }, this.asking.signal);
      this.rows = tableFromSteps(payload, STEP_FIELDS, 0, points);
      this.onChange();
    } catch (error) {
      // The recording is whole without them.
      if (!this.asking.signal.aborted) console.warn("steps of the recording", error);
    }
  }

  /**
   * The timeline of the window; what is there stays until the answer has come.
   * @param {ExplorerView} view
   */
  async loadWindow(view) {
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      await this.askWindow(view, signal);
      this.error = null;
    } catch (error) {
      if (signal.aborted) return;
      this.error = /** @type {Error} */ (error);
    }
    this.onChange();
  }

  /**
   * @param {ExplorerView} view
   * @param {AbortSignal} signal
   */
  async askWindow(view, signal) {
    const [start, end] = this.rangeOf(view);
    this.timeline = await api.timeline(this.id, { by: view.by, device: view.device, start, end }, signal);
  }

  /**
   * Who held how much after an entry; the last moment where there is no history.
   * @param {number} at
   * @param {ExplorerView} view
   */
  async loadMoment(at, view) {
    this.askingMoment.abort();
    this.askingMoment = new AbortController();
    const { signal } = this.askingMoment;
    try {
      this.moment = await api.moment(this.id, { at: this.facts?.has_history === false ? "end" : String(at), fold: String(view.fold), device: view.device }, signal);
      this.momentError = null;
    } catch (error) {
      if (signal.aborted) return;
      this.momentError = /** @type {Error} */ (error);
    }
    this.onChange();
  }
}
