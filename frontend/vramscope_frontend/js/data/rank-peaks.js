// The highest moment of every rank with its composition: asked for while somebody compares ranks.

import { api } from "../api.js";
import { compose, countersAt, OPTIMIZER_BEFORE } from "../composition.js";
import * as fields from "../fields.js";
import { known } from "../format.js";
import { HELD, highMoments, MOMENT, MOMENTS } from "../high-moments.js";
import { heightOf, highestRow } from "../peaks.js";
import { rowAt, tableFromSeries, tableFromSteps } from "../series.js";

/** @typedef {import("../messages.js").Rank} Rank */
/** @typedef {import("../messages.js").StepsPayload} StepsPayload */
/** @typedef {import("../messages.js").SeriesPayload} SeriesPayload */
/** @typedef {import("../composition.js").Composition} Composition */
/** @typedef {{step: number, state: Composition}} RankPeak */

const STEP_FIELDS = [
  fields.ALLOCATED, fields.ALLOCATED_PEAK, fields.ACTIVE, fields.ACTIVE_PEAK, fields.RESERVED, fields.RESERVED_PEAK,
  fields.PEAK_ALLOCATED, fields.PEAK_ACTIVE, fields.PEAK_RESERVED, fields.PEAK_PART, ...fields.CATEGORY_FIELDS,
];
const DEVICE_FIELDS = [fields.RESERVED, fields.DEVICE_USED, fields.DEVICE_PROCESS, fields.DEVICE_OTHER, fields.DEVICE_TOTAL, fields.DEVICE_FREE];
const FETCHES_AT_ONCE = 4;
const EVERY_MS = 20_000;
/** What lies outside of PyTorch changes little: its newest minute stands for the highest moment. */
const DEVICE_NS = 60e9;

export class RankPeaks {
  /**
   * @param {string} run
   * @param {number} origin_ns
   * @param {() => void} onChange
   */
  constructor(run, origin_ns, onChange) {
    this.run = run;
    this.origin_ns = origin_ns;
    this.onChange = onChange;
    /** @type {Map<number, RankPeak>} */
    this.peaks = new Map();
    this.version = 0;
    this.closing = new AbortController();
    this.asking = false;
    this.asked_ms = -Infinity;
  }

  close() {
    this.closing.abort();
  }

  /**
   * Ask again, if the last answers are old.
   * @param {Rank[]} ranks
   */
  refresh(ranks) {
    if (this.asking || document.hidden || performance.now() - this.asked_ms < EVERY_MS) return;
    this.asking = true;
    this.asked_ms = performance.now();
    void this.fetchAll([...ranks]).finally(() => (this.asking = false));
  }

  /** @param {Rank[]} waiting */
  async fetchAll(waiting) {
    const { signal } = this.closing;
    const work = async () => {
      for (let rank = waiting.shift(); rank && !signal.aborted; rank = waiting.shift()) {
        const since_ns = (rank.last_seen_ns ?? 0) - DEVICE_NS;
        const [steps, samples] = await Promise.all([
          api.steps(this.run, { fields: STEP_FIELDS, rank: rank.rank, points: 2 }, signal),
          api.series(this.run, { fields: DEVICE_FIELDS, rank: rank.rank, start_ns: since_ns > 0 ? since_ns : null, points: 1 }, signal),
        ]);
        const peak = peakOfRank(steps, samples, this.origin_ns);
        if (!peak) continue;
        this.peaks.set(rank.rank, peak);
        this.version++;
        this.onChange();
      }
    };
    try {
      await Promise.all(Array.from({ length: FETCHES_AT_ONCE }, work));
    } catch (error) {
      // The heat map and the totals stand without it; the next round asks again.
      if (!signal.aborted) console.warn("peaks of ranks", error);
    }
  }
}

/**
 * @param {StepsPayload} steps thinned to the highest rows
 * @param {SeriesPayload} samples
 * @param {number} origin_ns
 * @returns {RankPeak | null}
 */
export function peakOfRank(steps, samples, origin_ns) {
  const table = tableFromSteps(steps, STEP_FIELDS, origin_ns, Infinity);
  const { columns } = table;
  // Without exact peaks: those since the last reset, which the thinned rows are the highest of.
  for (const [exact, since] of [[fields.PEAK_ALLOCATED, fields.ALLOCATED_PEAK], [fields.PEAK_ACTIVE, fields.ACTIVE_PEAK], [fields.PEAK_RESERVED, fields.RESERVED_PEAK]]) {
    columns[exact] = columns[exact].map((value, i) => (known(value) ? value : columns[since][i]));
  }
  const high = highMoments(table, tableFromSeries(samples, [...DEVICE_FIELDS, fields.ALLOCATED], origin_ns));
  // The row before a thinned one is not at hand: state of the optimizer hardly changes after the first steps.
  high.columns[OPTIMIZER_BEFORE] = columns[fields.OPTIMIZER_STATE];
  const top = highestRow(high, (i) => heightOf(Math.max(high.columns[fields.DEVICE_USED][i] || 0, high.columns[fields.RESERVED][i] || 0), high.columns[fields.ALLOCATED][i]));
  if (!top) return null;
  const row = rowAt(high, top.index);
  return { step: row[fields.STEP] ?? high.x[top.index], state: compose(countersAt(row, true, row[HELD] ?? null, MOMENTS[row[MOMENT] ?? 0]), null) };
}
