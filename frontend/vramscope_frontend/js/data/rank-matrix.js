// Memory in use by every rank over time: the highest value a bin, in bins that double in width as
// the run grows, so that any number of hours stays one small table.

import { known } from "../format.js";
import { middle } from "../growth.js";

const MOST_BINS = 480;

export class RankMatrix {
  /** @param {number} binWidth_s */
  constructor(binWidth_s) {
    this.binWidth_s = Math.max(0.25, binWidth_s);
    /** @type {Map<number, {bins: number[], peak: number, latest: number, latest_t: number}>} */
    this.rows = new Map();
    this.version = 0;
  }

  /**
   * @param {number} rank
   * @param {number} t seconds since the run started
   * @param {number | null | undefined} used_bytes
   * @param {number} [span_s] how long the value holds
   */
  add(rank, t, used_bytes, span_s = 0) {
    if (!known(used_bytes) || t < 0) return;
    while (t / this.binWidth_s >= MOST_BINS) this.widen();
    let row = this.rows.get(rank);
    if (!row) {
      row = { bins: [], peak: -Infinity, latest: used_bytes, latest_t: -Infinity };
      this.rows.set(rank, row);
    }
    const bin = Math.floor(t / this.binWidth_s);
    while (row.bins.length <= bin) row.bins.push(NaN);
    // A rolled-up value stands for a whole stretch: without this it would leave holes behind it.
    for (let i = bin; i <= Math.min(MOST_BINS - 1, Math.floor((t + span_s) / this.binWidth_s)); i++) {
      if (i > bin && i * this.binWidth_s >= t + span_s) break;
      while (row.bins.length <= i) row.bins.push(NaN);
      if (!(row.bins[i] >= used_bytes)) row.bins[i] = used_bytes;
    }
    row.peak = Math.max(row.peak, used_bytes);
    if (t >= row.latest_t) {
      row.latest = used_bytes;
      row.latest_t = t;
    }
    this.version++;
  }

  widen() {
    this.binWidth_s *= 2;
    for (const row of this.rows.values()) {
      const { bins } = row;
      row.bins = Array.from({ length: Math.ceil(bins.length / 2) }, (_, i) => higher(bins[2 * i], bins[2 * i + 1]));
    }
  }

  get binCount() {
    return Math.max(0, ...[...this.rows.values()].map((row) => row.bins.length));
  }

  /**
   * Rows of a picture of at most `most` bins: each the highest use in it.
   * @param {number} most
   * @returns {{t: number[], used: Map<number, number[]>}}
   */
  picture(most) {
    const count = this.binCount;
    const join = Math.max(1, Math.ceil(count / most));
    const width = Math.ceil(count / join);
    /** @type {Map<number, number[]>} */
    const used = new Map();
    for (const [rank, row] of this.rows) {
      used.set(rank, Array.from({ length: width }, (_, i) => {
        let value = NaN;
        for (let j = i * join; j < (i + 1) * join; j++) value = higher(value, row.bins[j]);
        return value;
      }));
    }
    return { t: Array.from({ length: width }, (_, i) => i * join * this.binWidth_s), used };
  }
}

/**
 * @param {number} a
 * @param {number | undefined} b
 */
function higher(a, b) {
  if (b === undefined || Number.isNaN(b)) return a;
  return a >= b ? a : b;
}

/** Less of a device than this is no difference that a reader would act on. */
const LEAST_DIFFERENCE = 0.025;

/**
 * Ranks that stand out: more than three robust deviations below the median head-room, and by a part
 * of the device that matters. Caches grow in large bites, so that most ranks may be alike to the byte
 * and the deviation 0.
 * @param {{rank: number, free: number, limit?: number | null}[]} ranks
 * @returns {Set<number>}
 */
export function outliers(ranks) {
  const frees = ranks.map((one) => one.free).filter(known);
  const median = middle(frees);
  if (frees.length < 4 || median === null) return new Set();
  // 1.4826: the median deviation of a normal distribution in standard deviations.
  const spread = 1.4826 * (middle(frees.map((free) => Math.abs(free - median))) ?? 0);
  const floor = (/** @type {number | null | undefined} */ limit) => Math.max(LEAST_DIFFERENCE * (limit ?? 0), 0.015 * Math.abs(median));
  return new Set(ranks.filter((one) => known(one.free) && median - one.free > Math.max(3 * spread, floor(one.limit))).map((one) => one.rank));
}

/**
 * Least, median and highest value of each bin over all ranks, and the rank with the highest peak.
 * @param {Map<number, number[]>} used
 */
export function envelope(used) {
  const rows = [...used.values()];
  const bins = Math.max(0, ...rows.map((row) => row.length));
  /** @type {{least: number[], median: number[], most: number[]}} */
  const found = { least: [], median: [], most: [] };
  for (let i = 0; i < bins; i++) {
    const values = rows.map((row) => row[i]).filter(known).sort((a, b) => a - b);
    found.least.push(values.length ? values[0] : NaN);
    found.median.push(values.length ? values[values.length >> 1] : NaN);
    found.most.push(values.length ? values[values.length - 1] : NaN);
  }
  return found;
}
