// Recorded snapshots as diamonds on a line through the run; the live map is its right end.

import { api } from "../api.js";
import { el, fillWhenChanged } from "../dom.js";
import { clock, count, known, plural } from "../format.js";

/** @typedef {import("../messages.js").SnapshotInfo} SnapshotInfo */
/** @typedef {{id: string, at: number, title: string}} Mark  at: share of the line, from the left */

const LEAST_GAP = 0.02;

/**
 * Where each snapshot is; those too close to the one before move to its right.
 * @param {SnapshotInfo[]} snapshots
 * @param {number} rank
 * @param {number} started_ns
 * @param {number} now_ns
 * @returns {Mark[]}
 */
export function marksOf(snapshots, rank, started_ns, now_ns) {
  const span_ns = Math.max(1, now_ns - started_ns);
  const shown = snapshots.filter((one) => one.state === "complete" && (one.rank === rank || one.rank === null)).sort((a, b) => timeOf(a) - timeOf(b));
  let last = -LEAST_GAP;
  return shown.map((one) => {
    const at = Math.min(1, Math.max(0, (timeOf(one) - started_ns) / span_ns, last + LEAST_GAP));
    last = at;
    return { id: one.id, at, title: `Snapshot${known(one.step) ? ` at step ${count(one.step)}` : ""}, ${clock(timeOf(one))}` };
  });
}

/**
 * When it was taken; where nobody says, when it came.
 * @param {SnapshotInfo} one
 */
function timeOf(one) {
  return one.taken_ns ?? one.received_ns;
}

export class SnapshotLine {
  /** @param {import("../views/run-page.js").RunPage} page */
  constructor(page) {
    this.page = page;
    /** @type {SnapshotInfo[]} */
    this.snapshots = [];
    this.news = -1;
    this.track = el("div", { class: "map-track" });
    this.words = el("span", { class: "ink2" });
    this.element = el("div", { class: "map-line", hidden: true }, this.track, this.words);
  }

  /** @param {number} rank */
  update(rank) {
    const { session, app } = this.page;
    if (session.snapshotNews !== this.news) {
      this.news = session.snapshotNews;
      void this.load();
    }
    const { run } = session;
    if (!run) return;
    const marks = marksOf(this.snapshots, rank, run.started_ns, run.ended_ns ?? app.clock.now_ns());
    this.element.hidden = marks.length === 0;
    fillWhenChanged(this.words, String(marks.length), () => [plural(marks.length, "recorded snapshot")]);
    fillWhenChanged(this.track, marks.map((mark) => `${mark.id}${Math.round(mark.at * 200)}`).join("/"), () => marks.map((mark) => {
      const link = el("a", { class: "map-mark", href: this.page.snapshotPath(mark.id), title: mark.title, "aria-label": mark.title });
      link.style.left = `${mark.at * 100}%`;
      return link;
    }));
  }

  async load() {
    try {
      this.snapshots = await api.snapshots(this.page.id);
      this.page.changed();
    } catch (error) {
      // The page of snapshots says what is wrong with the list; the map is whole without it.
      console.warn("snapshots", error);
    }
  }
}
