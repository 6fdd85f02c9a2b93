// Who holds what stays: the segments that cannot go back, and by what they are held. Pure.

import { count, known, plural, sizeText } from "../format.js";
import { receiptsOf } from "./effects.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {{what: string, bytes: number, segments: number}} Holder */

const MOST = 5;

/**
 * Of all ranks together, largest first.
 * @param {Command} command
 * @returns {Holder[]}
 */
export function holdersOf(command) {
  /** @type {Map<string, Holder>} */
  const all = new Map();
  for (const { receipt } of receiptsOf(command)) {
    const told = receipt.result?.held_by;
    for (const one of Array.isArray(told) ? told : []) {
      if (typeof one?.what !== "string" || !known(one.bytes)) continue;
      const had = all.get(one.what) ?? { what: one.what, bytes: 0, segments: 0 };
      all.set(one.what, { what: one.what, bytes: had.bytes + one.bytes, segments: had.segments + (known(one.segments) ? one.segments : 0) });
    }
  }
  return [...all.values()].sort((a, b) => b.bytes - a.bytes);
}

/**
 * Rows "what", "how much", "in how many segments"; the smaller ones in one.
 * @param {Holder[]} holders
 * @returns {[string, string, string][]}
 */
export function holderRows(holders) {
  const row = (/** @type {Holder} */ { what, bytes, segments }) => /** @type {[string, string, string]} */ ([what, sizeText(bytes), segments > 0 ? plural(segments, "segment") : ""]);
  const more = holders.slice(MOST);
  if (more.length < 2) return holders.map(row);
  const sum = (/** @type {"bytes" | "segments"} */ key) => more.reduce((total, one) => total + one[key], 0);
  return [...holders.slice(0, MOST).map(row), row({ what: `${count(more.length)} more`, bytes: sum("bytes"), segments: sum("segments") })];
}
