// How much of a moment is what a finding accuses: what the step hands on beyond what it handed on
// when the growth began. Pure.

import { withGrown } from "../composition.js";
import { ALLOCATED } from "../fields.js";
import { known } from "../format.js";
import { middle } from "../growth.js";
import { indexAt, lowerBound } from "../series.js";

/** @typedef {import("../composition.js").Composition} Composition */
/** @typedef {import("../series.js").Table} Table */
/** @typedef {import("./growth-evidence.js").Evidence} Evidence */

/** Rows from the onset on whose median is where the growth began. */
const ONSET_ROWS = 5;

/**
 * Bytes that a step handed on when the growth began; null where that is not known.
 * @param {Table} steps
 * @param {number | null} onset_t
 */
export function floorAtOnset(steps, onset_t) {
  if (onset_t === null) return null;
  const from = Math.max(0, indexAt(steps.t, onset_t));
  return middle((steps.columns[ALLOCATED] ?? []).slice(from, from + ONSET_ROWS));
}

/**
 * Bytes that the last step before a moment handed on.
 * @param {Table} steps
 * @param {number} t
 */
export function floorBefore(steps, t) {
  const index = lowerBound(steps.t, t) - 1;
  const floor = index < 0 ? NaN : (steps.columns[ALLOCATED]?.[index] ?? NaN);
  return known(floor) ? floor : null;
}

/**
 * @param {Composition} state
 * @param {{evidence?: Evidence | null, onset_bytes?: number | null}} scene
 * @param {number | null} floor that the moment stands on
 * @param {number} t of the moment
 * @returns {Composition}
 */
export function accuse(state, { evidence, onset_bytes }, floor, t) {
  if (evidence?.layer !== "grown" || !known(evidence.onset_t) || !known(onset_bytes) || !known(floor) || t < evidence.onset_t) return state;
  return withGrown(state, Math.max(0, floor - onset_bytes));
}
