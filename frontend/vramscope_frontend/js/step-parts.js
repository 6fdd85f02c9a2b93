// What a step did in its forward, its backward and its optimizer, where the agent tells them apart. Pure.

import * as fields from "./fields.js";
import { known, sizeText } from "./format.js";

/** @typedef {import("./series.js").Table} Table */
/** @typedef {{name: import("./fields.js").PartName, time_s: number | null, volume: number | null, peak: number | null, isHighest: boolean}} StepPart */
/** @typedef {{rows: StepPart[], highest: string | null, volume: number | null}} StepParts `highest`: in which of them allocated was highest */

const OUTSIDE = "none of these";

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
 * "Highest in backward. 108 GiB allocated and freed within the step.": empty where nothing is known.
 * @param {StepParts | null} parts
 */
export function partsText(parts) {
  if (!parts) return "";
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
