// What a range that was marked in the chart holds: how long, lowest, highest, growth. Pure.

import { ALLOCATED } from "./fields.js";
import { age, changeInUnit, duration, known, plural, sizeText, tableUnit } from "./format.js";
import { rowsBetween } from "./series.js";

/** @typedef {import("./charts/timeline.js").TimelineModel} TimelineModel */
/** @typedef {import("./series.js").Table} Table */
/** @typedef {{duration: string, lowest: number | null, highest: number | null, growth: number | null}} BrushFacts */

/**
 * @param {TimelineModel} model what is drawn
 * @param {Table} steps
 * @param {[number, number]} range on the axis of the model
 * @returns {BrushFacts}
 */
export function brushFacts(model, steps, range) {
  const inside = model.tops.filter((top, i) => Number.isFinite(top) && model.x[i] >= range[0] && model.x[i] <= range[1]);
  const table = model.xKind === "step" ? steps : { ...steps, x: steps.t };
  const [first, to] = rowsBetween(table, range[0], range[1]);
  // The row before the range is what it begins with, but not a row of it.
  const from = table.x[first] < range[0] ? first + 1 : first;
  const floors = (steps.columns[ALLOCATED] ?? []).slice(from, to).filter(known);
  const isSteps = model.xKind === "step";
  // A step takes from the end of the one before to its own.
  const seconds = to > from ? steps.t[to - 1] - (steps.t[from - 1] ?? steps.t[from]) : NaN;
  const ended = Math.round(Math.max(1, to > from ? steps.x[to - 1] - steps.x[from] + 1 : range[1] - range[0]));
  return {
    duration: isSteps ? [plural(ended, "step"), Number.isFinite(seconds) && lengthText(seconds)].filter(Boolean).join(" · ") : lengthText(range[1] - range[0]),
    lowest: inside.length ? Math.min(...inside) : null,
    highest: inside.length ? Math.max(...inside) : null,
    growth: floors.length > 1 ? floors[floors.length - 1] - floors[0] : null,
  };
}

/**
 * A few steps may take less than a second.
 * @param {number} seconds
 */
function lengthText(seconds) {
  return seconds < 60 ? duration(seconds) : age(seconds);
}

/**
 * "lowest 1.2 GiB · highest 3.4 GiB · growth +0.3 GiB".
 * @param {BrushFacts} facts
 */
export function brushText({ lowest, highest, growth }) {
  const unit = tableUnit(known(growth) ? 4 * Math.abs(growth) : 0);
  return [known(lowest) && `lowest ${sizeText(lowest)}`, known(highest) && `highest ${sizeText(highest)}`, known(growth) && `growth ${changeInUnit(growth, unit)} ${unit.name}`].filter(Boolean).join(" · ");
}
