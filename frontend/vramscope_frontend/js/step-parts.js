// What a step did in its forward, its backward and its optimizer, where the agent tells them apart. Pure.

import * as fields from "./fields.js";
import { known, sizeText } from "./format.js";
import { beginsLife, numberOf } from "./numbering.js";

/** @typedef {import("./series.js").Table} Table */
/** @typedef {{name: import("./fields.js").PartName, time_s: number | null, volume: number | null, peak: number | null, isHighest: boolean}} StepPart */
/** @typedef {{rows: StepPart[], highest: string | null, volume: number | null}} StepParts `highest`: in which of them allocated was highest */

/** Parts of a step, and whose they are. @typedef {StepParts & {number: number, isOwn: boolean}} PartsOfStep */

const OUTSIDE = "none of these";
/** Not every step is split: as far back as this one stands for those after it. */
const MOST_BACK = 1000;

/**
 * @param {Table} table rows of steps
 * @param {number} index
 * @returns {StepParts | null} null for a step that was not split, or of an agent that does not do it
 */
export function partsOf(table, index) {
  const at = (/** @type {string} */ name) => {
    const value = table.columns[name]?.[index];
    return known(value) ? value : null;
  };
  const code = at(fields.PEAK_PART);
  const rows = fields.PARTS.map((name, i) => {
    const us = at(fields.partField(name, "time_us"));
    return { name, time_s: us === null ? null : us / 1e6, volume: at(fields.partField(name, "volume_bytes")), peak: at(fields.partField(name, "peak_bytes")), isHighest: code === i + 1 };
  });
  if (rows.every((row) => row.time_s === null && row.peak === null && row.volume === null)) return null;
  return { rows, highest: code === null ? null : (fields.PARTS[code - 1] ?? OUTSIDE), volume: at(fields.ALLOCATED_VOLUME) };
}

/**
 * The parts of a step, or of the last one before it that was split.
 * @param {Table} table
 * @param {number} index
 * @returns {PartsOfStep | null}
 */
export function partsNear(table, index) {
  for (let i = index; i >= Math.max(0, index - MOST_BACK); i--) {
    const parts = partsOf(table, i);
    if (parts) return { ...parts, number: numberOf(table, i), isOwn: i === index };
    if (beginsLife(table, i)) return null;
  }
  return null;
}

/**
 * "Highest in backward. 108 GiB handed out in the step."; empty where nothing is known of that very step.
 * @param {PartsOfStep | null} parts
 */
export function partsText(parts) {
  if (!parts?.isOwn) return "";
  const where = parts.highest === OUTSIDE ? "Highest outside of forward, backward and optimizer." : parts.highest ? `Highest in ${parts.highest}.` : "";
  return [where, known(parts.volume) && `${sizeText(parts.volume)} handed out in the step.`].filter(Boolean).join(" ");
}

/** @typedef {{x0: number, x1: number, name: string, title: string}} PlacedPart */

/**
 * Where the parts lie within a step, in seconds: their lengths are measured, their places follow from
 * their order, with the optimizer up to the end of the step. What is left over comes first.
 * @param {StepParts} parts
 * @param {number} start_t
 * @param {number} end_t
 * @returns {PlacedPart[]}
 */
export function placeParts(parts, start_t, end_t) {
  /** @type {PlacedPart[]} */
  const placed = [];
  let to = end_t;
  for (const { name, time_s } of [...parts.rows].reverse()) {
    if (!known(time_s) || time_s <= 0 || to <= start_t) continue;
    const from = Math.max(start_t, to - time_s);
    placed.unshift({ x0: from, x1: to, name, title: `${name}: its length is measured, its place follows from the order of the parts` });
    to = from;
  }
  return placed;
}
