// The use of one rank over time as a path: one of several small pictures on the same scale. Pure.

import { known } from "../format.js";

export const WIDTH = 240;
export const HEIGHT = 56;

/**
 * Steps, not slopes: memory changes at once. Where nothing is known there is no line.
 * @param {number[]} t begin of each bin
 * @param {number[]} values highest of each bin
 * @param {[number, number]} range that is shown
 * @param {number} top of the scale, which begins at 0
 * @returns {{line: string, area: string} | null} null where nothing of the range is known
 */
export function multiplePath(t, values, [from, to], top) {
  if (!(top > 0) || !(to > from)) return null;
  const x = (/** @type {number} */ at) => (Math.min(1, Math.max(0, (at - from) / (to - from))) * WIDTH).toFixed(1);
  const width = t.length > 1 ? t[1] - t[0] : to - from;
  let line = "";
  let area = "";
  let isOpen = false;
  values.forEach((value, i) => {
    const end = Math.min(to, t[i] + width);
    if (end <= from || t[i] >= to) return;
    if (!known(value)) {
      if (isOpen) area += `V${HEIGHT}Z`;
      isOpen = false;
      return;
    }
    const y = (HEIGHT - Math.min(1, value / top) * (HEIGHT - 1)).toFixed(1);
    line += isOpen ? `V${y}H${x(end)}` : `M${x(t[i])} ${y}H${x(end)}`;
    area += isOpen ? `V${y}H${x(end)}` : `M${x(t[i])} ${HEIGHT}V${y}H${x(end)}`;
    isOpen = true;
  });
  if (isOpen) area += `V${HEIGHT}Z`;
  return line ? { line, area } : null;
}
