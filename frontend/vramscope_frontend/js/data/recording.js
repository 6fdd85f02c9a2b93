// One stored snapshot as its page reads it: what is known of it, the timeline of a window, a moment.

import { api } from "../api.js";
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
