// Where each segment is drawn: rows of equal width, first fit; a segment keeps its place while it
// is alive. Pure.

import { MIB } from "../format.js";

/** @typedef {import("./map-state.js").Segment} Segment */
/** @typedef {"size" | "address"} Order */
/** @typedef {{segment: Segment, start: number}} Placed  start on one line through all rows, in bytes */

const WIDEST_ROW = 256 * MIB;
const MOST_ROWS = 96;
/** With more of the rows empty than that, everything is placed anew. */
const WASTE = 1.35;

/**
 * As wide as the largest segment, at most 256 MiB; wider where that would be more rows than the
 * eye can take in.
 * @param {Iterable<Segment>} segments
 */
export function rowBytesFor(segments) {
  let largest = 0;
  let total = 0;
  for (const { size } of segments) {
    largest = Math.max(largest, size);
    total += size;
  }
  let width = Math.min(Math.max(largest, 2 * MIB), WIDEST_ROW);
  while (total / width > MOST_ROWS) width *= 2;
  return width;
}

export class Packing {
  constructor() {
    this.row_bytes = 1;
    this.gap_bytes = 0;
    /** @type {Order} */
    this.order = "size";
    /** @type {Map<number, number>} start by address */
    this.starts = new Map();
    /** @type {Placed[]} by start */
    this.placed = [];
    /** @type {number[]} where each row's free end begins */
    this.used = [];
  }

  get rows() {
    return this.used.length;
  }

  /** Place everything anew with the next update. */
  sort() {
    this.starts.clear();
  }

  /**
   * @param {Map<number, Segment>} segments
   * @param {number} row_bytes
   * @param {number} gap_bytes  between two segments of a row
   * @param {Order} order
   */
  update(segments, row_bytes, gap_bytes, order) {
    const isAnew = row_bytes !== this.row_bytes || order !== this.order || order === "address";
    Object.assign(this, { row_bytes, gap_bytes, order });
    const before = new Map(this.placed.map(({ segment }) => [segment.address, segment.size]));
    const kept = [...segments.values()].filter((one) => !isAnew && this.starts.has(one.address) && before.get(one.address) === one.size);
    this.place(segments, kept);
    let total = 0;
    for (const { size } of segments.values()) total += size + gap_bytes;
    if (kept.length && this.rows > (total / row_bytes) * WASTE + 2) this.place(segments, []);
  }

  /**
   * @param {Map<number, Segment>} segments
   * @param {Segment[]} kept
   */
  place(segments, kept) {
    const starts = new Map(kept.map(({ address }) => [address, this.starts.get(address) ?? 0]));
    this.used = [];
    for (const segment of kept) this.occupy(starts.get(segment.address) ?? 0, segment.size);
    const rest = [...segments.values()].filter(({ address }) => !starts.has(address));
    rest.sort((a, b) => (this.order === "size" ? b.size - a.size || a.address - b.address : a.address - b.address));
    for (const segment of rest) {
      const start = this.freeStart(segment.size);
      starts.set(segment.address, start);
      this.occupy(start, segment.size);
    }
    this.starts = starts;
    this.placed = [...segments.values()].map((segment) => ({ segment, start: starts.get(segment.address) ?? 0 })).sort((a, b) => a.start - b.start);
  }

  /** @param {number} size */
  freeStart(size) {
    const width = this.row_bytes;
    if (size > width) return this.rows * width;
    const first = this.order === "address" ? Math.max(0, this.rows - 1) : 0;
    for (let row = first; row < this.rows; row++) if (this.used[row] + size <= width) return row * width + this.used[row];
    return this.rows * width;
  }

  /**
   * @param {number} start
   * @param {number} size
   */
  occupy(start, size) {
    const width = this.row_bytes;
    const end = start + size;
    for (let row = Math.floor(start / width); row * width < end; row++) {
      const to = Math.min(end - row * width, width);
      while (this.used.length <= row) this.used.push(0);
      this.used[row] = Math.max(this.used[row], to + this.gap_bytes);
    }
  }

  /**
   * The block at a place on the line through all rows.
   * @param {number} at
   * @returns {{segment: Segment, index: number} | null}
   */
  blockAt(at) {
    const number = lastAtOrBefore(this.placed.length, (i) => this.placed[i].start, at);
    if (number < 0) return null;
    const { segment, start } = this.placed[number];
    return at < start + segment.size ? { segment, index: indexAt(segment, at - start) } : null;
  }

  /** @param {number} address */
  startOf(address) {
    return this.starts.get(address) ?? null;
  }
}

/**
 * Number of the block at an offset.
 * @param {Segment} segment
 * @param {number} offset
 */
export function indexAt(segment, offset) {
  return Math.max(0, lastAtOrBefore(segment.offsets.length, (i) => segment.offsets[i], offset));
}

/**
 * @param {number} length
 * @param {(i: number) => number} valueAt  rising
 * @param {number} wanted
 */
export function lastAtOrBefore(length, valueAt, wanted) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueAt(middle) <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
