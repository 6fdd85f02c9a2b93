// One rank against the median of all, category by category. Pure.

import { LAYERS } from "./composition.js";
import { known } from "./format.js";
import { middle } from "./growth.js";

/** @typedef {import("./composition.js").Composition} Composition */
/** @typedef {import("./composition.js").Layer} Layer */
/** @typedef {{layer: Layer, median: number | null, own: number | null, change: number | null, isLarge: boolean}} CompareRow */

const LARGE_BYTES = 5 * 2 ** 30;
const LARGE_SHARE = 0.05;
/** Less in both is no row of its own. */
const LEAST_BYTES = 2 ** 20;

/**
 * The middle of what is known; null where less than half of the ranks know it.
 * @param {(number | null | undefined)[]} values
 */
export function median(values) {
  const found = values.filter(known);
  return found.length * 2 < values.length ? null : middle(found);
}

/**
 * A difference that matters: above 5 GiB or 5 % of the device.
 * @param {number | null} change
 * @param {number | null} limit
 */
export function isLarge(change, limit) {
  return known(change) && (Math.abs(change) > LARGE_BYTES || (known(limit) && Math.abs(change) > LARGE_SHARE * limit));
}

/**
 * Bottom to top, as in the bars.
 * @param {Composition} own
 * @param {Composition[]} all of the ranks that are known, this one included
 * @param {number | null} limit
 * @returns {CompareRow[]}
 */
export function compareRows(own, all, limit) {
  return LAYERS.flatMap((layer) => {
    const usual = median(all.map((state) => state.layers[layer.id]));
    const value = own.layers[layer.id];
    if (Math.max(usual ?? 0, value ?? 0) < LEAST_BYTES) return [];
    const change = known(usual) && known(value) ? value - usual : null;
    return [{ layer, median: usual, own: value, change, isLarge: isLarge(change, limit) && (change ?? 0) > 0 }];
  });
}

/**
 * What a rank has most more of than the median; null where nothing is much more.
 * @param {CompareRow[]} rows
 */
export function mostAbove(rows) {
  const above = rows.filter((row) => row.isLarge).sort((a, b) => (b.change ?? 0) - (a.change ?? 0));
  return above[0] ?? null;
}
