// Sums over a map: what is free where, and which block is the largest. Pure.

import { ALLOCATED, FREE, PENDING } from "./map-state.js";

/** @typedef {import("./map-state.js").Segment} Segment */
/** @typedef {{segment: Segment, index: number}} Place */
/** @typedef {"stranded" | "cached" | "private"} FreeKind */
/** @typedef {{offset: number, size: number, kind: FreeKind}} FreePart */

/**
 * @typedef {object} MapFacts
 * @property {number} reserved
 * @property {number} live  bytes of allocated blocks
 * @property {number} liveBlocks
 * @property {number} pending
 * @property {number} stranded  free, but kept by what is live in the same segment or page
 * @property {number} strandedPieces
 * @property {number} cached  free, and `empty_cache` would return it
 * @property {number} privateFree
 * @property {number} free  all of it outside of private pools
 * @property {Place | null} largestFree  outside of private pools
 * @property {Place | null} largestLive
 * @property {number} mainStream  the one with the most live memory
 */

/**
 * Free parts of a segment as `empty_cache` sees them: a whole segment or whole pages can go.
 * @param {Segment} segment
 * @param {number} index
 * @param {number} range_start  start of the free stretch that the block is part of
 * @param {number} range_end
 * @returns {FreePart[]}
 */
export function freeParts(segment, index, range_start, range_end) {
  const offset = segment.offsets[index];
  const size = segment.sizes[index];
  if (segment.isPrivate) return [{ offset, size, kind: "private" }];
  if (!segment.isExpandable) return [{ offset, size, kind: segment.isLive ? "stranded" : "cached" }];
  const page = segment.page_bytes || segment.size;
  const from = Math.max(offset, Math.min(Math.ceil(range_start / page) * page, offset + size));
  const to = Math.max(from, Math.min(Math.floor(range_end / page) * page, offset + size));
  /** @type {FreePart[]} */
  const parts = [{ offset, size: from - offset, kind: "stranded" }, { offset: from, size: to - from, kind: "cached" }, { offset: to, size: offset + size - to, kind: "stranded" }];
  return parts.filter((part) => part.size > 0);
}

/**
 * Each block with the stretch of blocks around it that are not allocated.
 * @param {Segment} segment
 * @param {(index: number, range_start: number, range_end: number) => void} visit  free blocks only
 */
export function eachFree(segment, visit) {
  const { states, offsets, sizes } = segment;
  for (let i = 0; i < states.length; i++) {
    if (states[i] === ALLOCATED) continue;
    let last = i;
    while (last + 1 < states.length && states[last + 1] !== ALLOCATED) last++;
    for (let k = i; k <= last; k++) if (states[k] === FREE) visit(k, offsets[i], offsets[last] + sizes[last]);
    i = last;
  }
}

/**
 * @param {Iterable<Segment>} segments
 * @returns {MapFacts}
 */
export function mapFacts(segments) {
  /** @type {MapFacts} */
  const facts = { reserved: 0, live: 0, liveBlocks: 0, pending: 0, stranded: 0, strandedPieces: 0, cached: 0, privateFree: 0, free: 0, largestFree: null, largestLive: null, mainStream: 0 };
  /** @type {Map<number, number>} */
  const byStream = new Map();
  let most = 0;
  let widest = 0;
  for (const segment of segments) {
    facts.reserved += segment.size;
    segment.states.forEach((state, index) => {
      const size = segment.sizes[index];
      if (state === PENDING) facts.pending += size;
      if (state !== ALLOCATED) return;
      facts.live += size;
      facts.liveBlocks += segment.counts[index];
      byStream.set(segment.stream, (byStream.get(segment.stream) ?? 0) + size);
      if (segment.counts[index] === 1 && size > most) {
        most = size;
        facts.largestLive = { segment, index };
      }
    });
    eachFree(segment, (index, start, end) => {
      for (const part of freeParts(segment, index, start, end)) {
        if (part.kind === "private") facts.privateFree += part.size;
        else if (part.kind === "cached") facts.cached += part.size;
        else {
          facts.stranded += part.size;
          facts.strandedPieces += segment.counts[index];
        }
      }
      if (segment.isPrivate || segment.isSummarised) return;
      if (segment.sizes[index] > widest) {
        widest = segment.sizes[index];
        facts.largestFree = { segment, index };
      }
    });
  }
  facts.free = facts.stranded + facts.cached;
  facts.mainStream = [...byStream].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
  return facts;
}
