// Frames of a map out of short words: "a2 f1 p3" is 2 MiB allocated, 1 MiB free, 3 MiB pending free.

import { MapState } from "../../vramscope_frontend/js/map/map-state.js";

export const MIB = 1 << 20;
const STATES = /** @type {Record<string, number>} */ ({ f: 0, a: 1, p: 2 });

/**
 * @typedef {object} Made
 * @property {number} address
 * @property {string} blocks
 * @property {number} [flags] 1 large, 2 expandable, 4 private, 8 summarised
 * @property {number} [stream]
 * @property {number} [page_bytes]
 * @property {number[]} [categories]
 * @property {number[]} [stacks]
 * @property {number[]} [owners]
 * @property {number[]} [firstSteps]
 */

/**
 * @param {Made[]} made
 * @param {Record<string, any>} [more]
 */
export function frame(made, more = {}) {
  /** @type {any} */
  const segments = { address: [], size: [], stream: [], pool_owner: [], pool_number: [], page_bytes: [], flags: [], blocks: [] };
  /** @type {any} */
  const blocks = { size: [], requested: [], state: [], category: [], owner: [], stack: [], first_step: [], first_ms: [], count: [] };
  for (const { address, blocks: words, flags = 1, stream = 0, page_bytes = 0, categories = [], stacks = [], owners = [], firstSteps = [] } of made) {
    const list = words.split(" ");
    let size = 0;
    list.forEach((word, i) => {
      const bytes = Number(word.slice(1)) * MIB;
      size += bytes;
      blocks.size.push(bytes);
      blocks.requested.push(word[0] === "f" ? 0 : bytes - 8);
      blocks.state.push(STATES[word[0]]);
      blocks.category.push(categories[i] ?? 0);
      blocks.owner.push(owners[i] ?? -1);
      blocks.stack.push(stacks[i] ?? -1);
      blocks.first_step.push(firstSteps[i] ?? -1);
      blocks.first_ms.push(-1);
      blocks.count.push(1);
    });
    segments.address.push(address);
    segments.size.push(size);
    segments.stream.push(stream);
    segments.pool_owner.push(0);
    segments.pool_number.push(flags & 4 ? 1 : 0);
    segments.page_bytes.push(page_bytes);
    segments.flags.push(flags);
    segments.blocks.push(list.length);
  }
  return { rank: 0, number: 1, base: 0, time_ns: 2e9, step: 10, is_step_end: true, rate_hz: 2, took_us: 300, why_not: "", since_ns: 0, device_index: 0, limit_bytes: 1024 * MIB, device_free_bytes: null, summary: "", segments, blocks, gone: [], first_text: 0, texts: [], ...more };
}

/**
 * @param {Made[]} made
 * @param {Record<string, any>} [more]
 */
export function mapOf(made, more = {}) {
  const map = new MapState();
  map.take(frame(made, more));
  return map;
}

/** @param {Made} made */
export function segmentOf(made) {
  const segment = mapOf([made]).segments.get(made.address);
  if (!segment) throw new Error("expected the segment that was made");
  return segment;
}
