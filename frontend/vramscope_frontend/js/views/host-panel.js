// The host side of each rank: memory of the process and of its workers, limits, garbage collection.

import { api } from "../api.js";
import { el, fill } from "../dom.js";
import { count, exactBytes, plural, sizeText } from "../format.js";
import { deviceFields, garbageText, HOST_FIELDS, newest, usedOf } from "../host-figures.js";
import { dataTable, failedPart, panel } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../messages.js").Rank} Rank */
/** @typedef {import("../messages.js").SeriesPayload} SeriesPayload */

const MOST_RANKS = 16;
const STRETCH_NS = 60e9;
const AGAIN_MS = 5000;

export class HostPanel {
  /**
   * @param {RunPage} page
   * @param {() => void} onDevices called when numbers of further devices have come
   */
  constructor(page, onDevices) {
    this.page = page;
    this.onDevices = onDevices;
    /** Newest values by rank, those of further devices included. @type {Map<number, Record<string, number | null>>} */
    this.values = new Map();
    this.body = el("div", { class: "body rank-list" }, el("p", { class: "empty-line" }, "Asking the server."));
    this.element = panel("Host", [el("span", { class: "context" }, "the last known numbers; garbage collection over the last minute")], this.body);
    this.isAsking = false;
    this.isClosed = false;
    this.timer = setInterval(() => void this.ask(), AGAIN_MS);
    void this.ask();
  }

  close() {
    this.isClosed = true;
    clearInterval(this.timer);
  }

  async ask() {
    const run = this.page.session.run;
    if (!run || document.hidden || this.isAsking) return;
    this.isAsking = true;
    try {
      const ranks = (run.ranks ?? []).slice(0, MOST_RANKS);
      const end_ns = run.state === "live" ? this.page.app.clock.now_ns() : (run.ended_ns ?? run.last_seen_ns ?? run.started_ns);
      const found = await Promise.all(ranks.map((rank) => this.askRank(run.id, rank, end_ns)));
      if (this.isClosed) return;
      ranks.forEach((rank, i) => this.values.set(rank.rank, newest(found[i])));
      this.show(ranks, found, run.ranks?.length ?? 0);
      this.onDevices();
    } catch (error) {
      if (!this.isClosed) fill(this.body, failedPart("The host's numbers", /** @type {Error} */ (error), () => void this.ask()));
    } finally {
      this.isAsking = false;
    }
  }

  /**
   * @param {string} run
   * @param {Rank} rank
   * @param {number} end_ns
   */
  askRank(run, rank, end_ns) {
    const fields = [...HOST_FIELDS, ...rank.devices.slice(1, 9).flatMap((device) => deviceFields(device.index))];
    return api.series(run, { fields, rank: rank.rank, start_ns: end_ns - STRETCH_NS, end_ns, points: 200 });
  }

  /**
   * @param {Rank[]} ranks
   * @param {SeriesPayload[]} found
   * @param {number} all
   */
  show(ranks, found, all) {
    const rows = ranks.map((rank, i) => hostRow(rank, this.values.get(rank.rank) ?? {}, found[i]));
    const heads = ["Rank", ">Resident", ">In swap", ">Limit of the group", ">Pinned by PyTorch", ">Pinned otherwise", ">Shared", "Workers", ">Shared memory files", ">Threads", "Garbage collections"];
    fill(this.body, dataTable(heads, rows, "Host by rank"), ranks.length < all && el("p", { class: "ink3" }, `The first ${MOST_RANKS} of ${all} ranks.`));
  }
}

/**
 * @param {Rank} rank
 * @param {Record<string, number | null>} now
 * @param {SeriesPayload} payload
 * @returns {import("../dom.js").Child[]}
 */
function hostRow(rank, now, payload) {
  const size = (/** @type {string} */ name) => el("span", { title: exactBytes(now[name]) }, sizeText(now[name]));
  const workers = now["host.workers"];
  return [
    String(rank.rank),
    size("host.rss_bytes"),
    size("host.swap_bytes"),
    now["host.limit_bytes"] === null ? "–" : usedOf(now["host.limit_used_bytes"], now["host.limit_bytes"]),
    usedOf(now["host.pinned_bytes"], now["host.pinned_reserved_bytes"]),
    el("span", { title: "What a program has locked in memory itself. What a driver has pinned is not told by the kernel." }, now["host.locked_bytes"] ? `${sizeText(now["host.locked_bytes"])} locked` : "–"),
    size("host.shared_bytes"),
    workers ? `${plural(workers, "process", "processes")}: ${sizeText(now["host.workers_rss_bytes"])} resident, ${sizeText(now["host.workers_shared_bytes"])} shared` : workers === 0 ? "none" : "–",
    usedOf(now["host.shm_used_bytes"], now["host.shm_size_bytes"]),
    count(now["host.threads"]),
    garbageText(payload),
  ];
}
