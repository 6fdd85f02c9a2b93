// Whether a request finds a place, by the rules of PyTorch's caching allocator. Pure.

import { GIB, KIB, known, MIB } from "../format.js";
import { FREE } from "./map-state.js";

/** @typedef {import("./map-state.js").Segment} Segment */
/** @typedef {import("./map-facts.js").MapFacts} MapFacts */
/** @typedef {import("./map-facts.js").Place} Place */

/**
 * `block`: into a free one; `grow`: an expandable segment takes more pages; `segment`: a new one;
 * `flush`: a new one, once cached segments went back; `nowhere`; `unknown`: what the device has
 * left is not known.
 * @typedef {object} Fit
 * @property {"block" | "grow" | "segment" | "flush" | "nowhere" | "unknown"} kind
 * @property {number} size  the request as it is rounded
 * @property {Place | null} place
 * @property {number} needs  bytes taken from the device for it
 */

const SMALL_REQUEST = MIB;
const SMALL_SEGMENT = 2 * MIB;
const LARGE_SEGMENT = 20 * MIB;
const MIN_LARGE = 10 * MIB;
const MIN_BLOCK = 512;

/** @param {number} bytes */
export function roundedRequest(bytes) {
  return Math.max(MIN_BLOCK, Math.ceil(bytes / MIN_BLOCK) * MIN_BLOCK);
}

/** @param {number} size a rounded request */
export function segmentFor(size) {
  if (size <= SMALL_REQUEST) return SMALL_SEGMENT;
  return size < MIN_LARGE ? LARGE_SEGMENT : Math.ceil(size / SMALL_SEGMENT) * SMALL_SEGMENT;
}

/**
 * What PyTorch can still take from the device; null when nobody says.
 * @param {{limit_bytes: number | null, device_free_bytes: number | null}} head
 * @param {number} reserved
 */
export function roomOf(head, reserved) {
  const rooms = [head.device_free_bytes, known(head.limit_bytes) ? head.limit_bytes - reserved : null].filter(known);
  return rooms.length ? Math.max(0, Math.min(...rooms)) : null;
}

/**
 * @param {Iterable<Segment>} segments
 * @param {number} request_bytes
 * @param {MapFacts} facts
 * @param {number | null} room  bytes left on the device
 * @returns {Fit}
 */
export function fitOf(segments, request_bytes, facts, room) {
  const size = roundedRequest(request_bytes);
  const isSmall = size <= SMALL_REQUEST;
  /** @type {Place | null} */
  let place = null;
  let best = Infinity;
  let isExpandable = false;
  let tail = 0;
  let page = SMALL_SEGMENT;
  for (const segment of segments) {
    if (segment.isPrivate || segment.stream !== facts.mainStream || segment.isLarge === isSmall) continue;
    if (segment.isExpandable) {
      isExpandable = true;
      page = segment.page_bytes || page;
      const last = segment.states.length - 1;
      if (segment.states[last] === FREE) tail = Math.max(tail, segment.sizes[last]);
    }
    if (segment.isSummarised) continue;
    segment.states.forEach((state, index) => {
      const free = segment.sizes[index];
      if (state !== FREE || free < size || free >= best) return;
      best = free;
      place = { segment, index };
    });
  }
  if (place) return { kind: "block", size, place, needs: 0 };
  const needs = isExpandable ? Math.ceil((size - tail) / page) * page : segmentFor(size);
  if (room === null) return { kind: "unknown", size, place, needs };
  if (needs <= room) return { kind: isExpandable ? "grow" : "segment", size, place, needs };
  const returnable = facts.cached;
  return { kind: needs <= room + returnable ? "flush" : "nowhere", size, place, needs };
}

/**
 * "198 MiB", "1.5g", "4096": bytes, or null for what is no size.
 * @param {string} text
 */
export function parseSize(text) {
  const match = /^\s*([\d.,]+)\s*(k|m|g|kib|mib|gib|kb|mb|gb|b|bytes)?\s*$/i.exec(text);
  if (!match) return null;
  const value = Number(match[1].replaceAll(",", ""));
  const unit = { k: KIB, m: MIB, g: GIB }[(match[2] ?? "b")[0].toLowerCase()] ?? 1;
  return Number.isFinite(value) && value > 0 ? Math.round(value * unit) : null;
}
