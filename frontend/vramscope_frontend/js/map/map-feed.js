// Follows the map of one rank while the page is visible, and fetches it whole when a part is missing.

import { api } from "../api.js";
import { MapState } from "./map-state.js";

/** @typedef {import("../messages.js").MapFrame} MapFrame */

export class MapFeed {
  /**
   * @param {import("../connection.js").Connection} connection
   * @param {string} run
   * @param {number} rank
   * @param {() => void} onChange
   * @param {{whole: typeof api.map}} [source]
   */
  constructor(connection, run, rank, onChange, source = { whole: api.map }) {
    this.connection = connection;
    this.run = run;
    this.rank = rank;
    this.onChange = onChange;
    this.source = source;
    this.map = new MapState();
    /** When the last frame came, by this page's clock; 0 before the first. */
    this.heard_ms = 0;
    /** @type {string | null} why the map cannot be followed */
    this.refused = null;
    /** @type {(() => void) | null} */
    this.end = null;
    this.isFetching = false;
    this.isClosed = false;
    this.onVisibility = () => this.followWhileVisible();
    document.addEventListener("visibilitychange", this.onVisibility);
    this.followWhileVisible();
  }

  close() {
    this.isClosed = true;
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.end?.();
    this.end = null;
  }

  /** A hidden page looks at nothing, and the job should not pay for it. */
  followWhileVisible() {
    if (document.hidden) {
      this.end?.();
      this.end = null;
    } else if (!this.end) this.follow();
  }

  /** Ask for a look now, where there is no rate. */
  askAgain() {
    this.end?.();
    this.follow();
  }

  follow() {
    this.end = this.connection.follow({
      wish: { type: "subscribe_run", run: this.run, fields: [], ranks: [], map: this.rank },
      onEvent: (event) => {
        if (event.kind === "map" && event.rank === this.rank) this.take(event);
      },
      onError: (error) => {
        this.refused = error.message;
        this.onChange();
      },
    });
  }

  /** @param {MapFrame} frame */
  take(frame) {
    if (!this.map.take(frame)) {
      void this.fetchWhole();
      return;
    }
    this.heard_ms = performance.now();
    this.onChange();
  }

  async fetchWhole() {
    if (this.isFetching) return;
    this.isFetching = true;
    try {
      const whole = await this.source.whole(this.run, this.rank);
      // What came live meanwhile may be newer: then it was whole itself.
      if (!this.isClosed && whole.time_ns >= (this.map.head?.time_ns ?? 0)) this.take(whole);
    } catch (error) {
      // The next frame without a base says it all; until then the map that there is stays.
      console.warn("memory map", error);
    } finally {
      this.isFetching = false;
    }
  }
}
