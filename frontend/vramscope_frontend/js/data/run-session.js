// One run as this page follows it: fetched once, kept by the live feed, fetched again after a loss.

import { api } from "../api.js";
import { DEVICE_FREE, DEVICE_TOTAL, DEVICE_USED, LIVE_FIELDS, OVERVIEW_FIELDS, RESERVED, sampleFieldsOf } from "../fields.js";
import { mergeFindings } from "../findings.js";
import { known } from "../format.js";
import { PhaseLog } from "../phases.js";
import { Store } from "../store.js";
import { RankData } from "./rank-data.js";
import { RankMatrix } from "./rank-matrix.js";

/** @typedef {import("../messages.js").Run} Run */
/** @typedef {import("../messages.js").Rank} Rank */
/** @typedef {import("../messages.js").RunEvent} RunEvent */
/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../messages.js").Finding} Finding */
/** @typedef {import("../messages.js").LiveEvent} LiveEvent */
/** @typedef {{run: Run | null, events: RunEvent[], commands: Command[], findings: Finding[], error: Error | null, data: number}} RunState */

const MATRIX_BINS = 240;
const FETCHES_AT_ONCE = 4;
const MOST_EVENTS = 2000;
/** The server answers from what is committed, up to a second behind what it sends live. */
const SEAM_AFTER_MS = 2000;
/** One that arrives says so with each piece. */
const SNAPSHOTS_MS = 500;
const FINDINGS_MS = 15_000;

export class RunSession {
  /**
   * @param {import("../connection.js").Connection} connection
   * @param {import("../clock.js").ServerClock} clock
   * @param {string} id
   */
  constructor(connection, clock, id) {
    this.connection = connection;
    this.clock = clock;
    this.id = id;
    /** @type {Store<RunState>} */
    this.store = new Store(/** @type {RunState} */ ({ run: null, events: [], commands: [], findings: [], error: null, data: 0 }));
    /** @type {RankData | null} */
    this.rankData = null;
    /** @type {RankMatrix | null} */
    this.matrix = null;
    this.phases = new PhaseLog();
    /** Rises with each word of a snapshot. */
    this.snapshotNews = 0;
    /** @type {import("../messages.js").SnapshotInfo[] | null} */
    this.snapshots = null;
    /** @type {Error | null} */
    this.snapshotsError = null;
    this.snapshots_timer = 0;
    /** @type {import("../oom/messages.js").OomRow[]} */
    this.ooms = [];
    /** When the server looked last, and for what: null as long as that is not known. @type {{judged_ns: number | null, kinds: string[]} | null} */
    this.judged = null;
    this.findings_ms = -Infinity;
    /** @type {Error | null} */
    this.findingsError = null;
    /** When data arrived last, by the server's clock. */
    this.heard_ns = 0;
    this.closed = false;
    this.seam_timer = 0;
    /** @type {(() => void)[]} */
    this.unfollow = [];
    /** @type {(() => void) | null} */
    this.unfollowRank = null;
  }

  get run() {
    const { run } = this.store.state;
    // The run object is sent at most twice a second; data that came since makes it younger.
    return run && this.heard_ns > (run.last_seen_ns ?? 0) ? { ...run, last_seen_ns: this.heard_ns } : run;
  }

  close() {
    this.closed = true;
    clearTimeout(this.seam_timer);
    clearTimeout(this.snapshots_timer);
    this.unfollowRank?.();
    for (const end of this.unfollow) end();
    this.rankData?.close();
  }

  /** The list of snapshots, again. */
  async loadSnapshots() {
    clearTimeout(this.snapshots_timer);
    this.snapshots_timer = 0;
    try {
      this.snapshots = await api.snapshots(this.id);
      this.snapshotsError = null;
    } catch (error) {
      this.snapshotsError = /** @type {Error} */ (error);
    }
    if (!this.closed) this.changed();
  }

  async load() {
    void this.loadSnapshots();
    try {
      const [run, events, commands] = await Promise.all([api.run(this.id), api.events(this.id), api.commands(this.id)]);
      if (this.closed) return;
      this.store.set({ run, events: mergeEvents(this.store.state.events, events), commands: mergeCommands(this.store.state.commands, commands), error: null });
      void this.loadFindings();
      void this.loadOoms();
      if (run.world_size > 1 && !this.matrix) this.followAllRanks(run);
    } catch (error) {
      if (!this.closed) this.store.set({ error: /** @type {Error} */ (error) });
    }
  }

  async loadFindings() {
    try {
      this.findings_ms = performance.now();
      const { findings, judged_ns = null, looked_for = [] } = await api.findings(this.id);
      this.judged = { judged_ns, kinds: looked_for };
      this.findingsError = null;
      if (!this.closed) this.store.set({ findings: mergeFindings(this.store.state.findings, findings) });
    } catch (error) {
      // The page is whole without them, but must not say that nothing is wrong.
      this.findingsError = /** @type {Error} */ (error);
      if (!this.closed) this.changed();
    }
  }

  /** What was looked for and not found comes by no feed. */
  refreshFindings() {
    if (this.run?.state === "live" && performance.now() - this.findings_ms > FINDINGS_MS) void this.loadFindings();
  }

  /** @param {Finding} finding as it is now */
  takeFinding(finding) {
    this.store.set({ findings: mergeFindings(this.store.state.findings, [finding]) });
  }

  async loadOoms() {
    try {
      this.ooms = await api.ooms(this.id);
      if (!this.closed) this.changed();
    } catch (error) {
      // The list says nothing then; the page is whole without it.
      console.warn("reports of running out of memory", error);
    }
  }

  /**
   * Show this rank in full; `null` shows all of them together.
   * @param {number | null} rank
   * @param {number | null} [device] one of the rank beside the device that is watched in full
   */
  selectRank(rank, device = null) {
    const { run } = this.store.state;
    if (!run || (this.unfollowRank && (this.rankData?.rank ?? null) === rank && (this.rankData?.device ?? null) === device)) return;
    this.unfollowRank?.();
    this.rankData?.close();
    this.rankData = rank === null ? null : new RankData(run.id, rank, run.started_ns, () => this.changed(), device);
    this.unfollowRank = this.connection.follow({
      wish: { type: "subscribe_run", run: run.id, fields: rank === null ? [] : device === null ? LIVE_FIELDS : sampleFieldsOf(device), ranks: rank === null ? [] : [rank] },
      onEvent: (event) => this.take(event),
      onError: (error) => this.store.set({ error: new Error(error.message) }),
      onResubscribed: () => {
        void this.load();
        void this.loadPhases(rank);
        void this.rankData?.reload();
      },
    });
    void this.rankData?.load();
    void this.loadPhases(rank);
    this.changed();
  }

  /**
   * Phases of the rank that is shown. Ranks of one job go through the same: the first stands for all.
   * @param {number | null} rank
   */
  async loadPhases(rank) {
    try {
      this.phases.take(await api.phases(this.id, rank ?? this.firstRank));
      if (!this.closed) this.changed();
    } catch (error) {
      // The chart is whole without its bands; the feed brings those that begin from now on.
      console.warn("phases", error);
    }
  }

  get firstRank() {
    return this.store.state.run?.ranks?.[0]?.rank ?? 0;
  }

  changed() {
    this.store.set({ data: this.store.state.data + 1 });
  }

  /** @param {LiveEvent} event */
  take(event) {
    switch (event.kind) {
      case "run":
        this.store.set({ run: event.run });
        break;
      case "samples":
        this.heard_ns = this.clock.now_ns();
        if (event.rank === this.rankData?.rank) this.rankData.takeSamples(event);
        break;
      case "steps":
        this.heard_ns = this.clock.now_ns();
        if (event.rank === this.rankData?.rank) this.rankData.takeSteps(event);
        break;
      case "event":
        if (event.event.kind === "phase") {
          this.phases.take([event.event]);
          this.changed();
        } else this.store.set({ events: mergeEvents(this.store.state.events, [event.event]) });
        break;
      case "command":
        this.store.set({ commands: mergeCommands(this.store.state.commands, [event.command]) });
        break;
      case "snapshot":
        this.snapshotNews++;
        this.snapshots_timer ||= window.setTimeout(() => void this.loadSnapshots(), SNAPSHOTS_MS);
        this.changed();
        break;
      case "finding":
        this.takeFinding(event.finding);
        break;
      case "oom":
        this.ooms = [event.oom, ...this.ooms.filter((one) => one.id !== event.oom.id)].sort((a, b) => b.time_ns - a.time_ns);
        this.changed();
        break;
      case "status":
        this.takeStatus(event.rank, event.status);
        break;
      default:
        // A newer server may send more kinds than this page knows.
        break;
    }
  }

  /**
   * @param {number} rank
   * @param {import("../messages.js").AgentStatus} status
   */
  takeStatus(rank, status) {
    const { run } = this.store.state;
    if (!run?.ranks) return;
    this.store.set({ run: { ...run, ranks: run.ranks.map((one) => (one.rank === rank ? { ...one, status } : one)) } });
  }

  /** @param {Run} run */
  followAllRanks(run) {
    const end_ns = run.ended_ns ?? this.clock.now_ns();
    const matrix = new RankMatrix((end_ns - run.started_ns) / 1e9 / MATRIX_BINS);
    this.matrix = matrix;
    this.unfollow.push(this.connection.follow({
      wish: { type: "subscribe_run", run: run.id, fields: OVERVIEW_FIELDS, ranks: null },
      onEvent: (event) => {
        if (event.kind !== "samples") return;
        this.heard_ns = this.clock.now_ns();
        const { columns } = event;
        event.time_ns.forEach((ns, i) => matrix.add(event.rank, (ns - run.started_ns) / 1e9, inUse(columns[DEVICE_USED]?.[i], columns[RESERVED]?.[i], columns[DEVICE_TOTAL]?.[i], columns[DEVICE_FREE]?.[i])));
        this.changed();
      },
      onResubscribed: () => void this.fetchAllRanks(run, matrix),
    }));
    void this.fetchAllRanks(run, matrix);
  }

  /**
   * The history of every rank, then what lies between it and the first live row.
   * @param {Run} run
   * @param {RankMatrix} matrix
   */
  async fetchAllRanks(run, matrix) {
    const asked_ns = this.clock.now_ns();
    await this.fetchRanksFrom(run, matrix, null);
    if (this.closed || run.state !== "live") return;
    clearTimeout(this.seam_timer);
    this.seam_timer = setTimeout(() => void this.fetchRanksFrom(run, matrix, asked_ns - SEAM_AFTER_MS * 1e6), SEAM_AFTER_MS);
  }

  /**
   * @param {Run} run
   * @param {RankMatrix} matrix
   * @param {number | null} start_ns
   */
  async fetchRanksFrom(run, matrix, start_ns) {
    const waiting = (run.ranks ?? []).map((one) => one.rank);
    const work = async () => {
      for (let rank = waiting.shift(); rank !== undefined && !this.closed; rank = waiting.shift()) {
        const payload = await api.series(run.id, { fields: OVERVIEW_FIELDS, rank, points: MATRIX_BINS, start_ns });
        payload.time_ns.forEach((ns, i) => matrix.add(rank, (ns - run.started_ns) / 1e9, inUse(payload.columns[DEVICE_USED]?.max[i], payload.columns[RESERVED]?.max[i], payload.columns[DEVICE_TOTAL]?.max[i], payload.columns[DEVICE_FREE]?.min[i]), payload.resolution_ms / 1000));
        this.changed();
      }
    };
    try {
      await Promise.all(Array.from({ length: FETCHES_AT_ONCE }, work));
    } catch (error) {
      if (!this.closed) this.store.set({ error: /** @type {Error} */ (error) });
    }
  }
}

/**
 * What is not free on the device, the driver's own part included.
 * @param {number | null | undefined} used
 * @param {number | null | undefined} reserved
 * @param {number | null | undefined} total
 * @param {number | null | undefined} free
 */
function inUse(used, reserved, total, free) {
  return known(used) ? Math.max(used, reserved ?? 0, known(total) && known(free) ? total - free : 0) : reserved;
}

/**
 * Newest last; the same event may come by fetch and by feed.
 * @param {RunEvent[]} before
 * @param {RunEvent[]} more
 */
export function mergeEvents(before, more) {
  const all = new Map([...before, ...more].map((event) => [`${event.time_ns}/${event.rank}/${event.kind}/${event.text}`, event]));
  return [...all.values()].sort((a, b) => a.time_ns - b.time_ns).slice(-MOST_EVENTS);
}

const FINAL = new Set(["done", "failed", "refused", "expired"]);

/**
 * Newest last. A state never goes back: a fetch that was overtaken by the feed must not undo it.
 * @param {Command[]} before
 * @param {Command[]} more
 */
export function mergeCommands(before, more) {
  const all = new Map(before.map((command) => [command.id, command]));
  for (const command of more) {
    const old = all.get(command.id);
    if (!old || !FINAL.has(old.state) || FINAL.has(command.state)) all.set(command.id, command);
  }
  return [...all.values()].sort((a, b) => a.created_ns - b.created_ns);
}
