// Where ticks go and what they say. Pure.

import { count } from "../format.js";

const CLOCK_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

/**
 * The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `least`.
 * @param {number} least
 */
export function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 2.5, 5]) if (factor * power >= least * 0.999999) return factor * power;
  return 10 * power;
}

/**
 * Ticks of an axis of sizes; only the top one carries the unit.
 * @param {number} top
 * @param {string} unit
 * @param {number} [most]
 * @param {number} [from] where the axis begins
 * @returns {{tickvals: number[], ticktext: string[]}}
 */
export function sizeTicks(top, unit, most = 7, from = 0) {
  if (!(top > from)) return { tickvals: [0], ticktext: ["0"] };
  const step = niceStep((top - from) / most);
  const tickvals = [];
  // The limit has a label of its own at the left: a tick just below it would lie under it.
  for (let i = Math.ceil(from / step); i * step <= top - 0.035 * (top - from); i++) tickvals.push(i * step);
  const digits = step < 1 ? Math.max(0, Math.ceil(-Math.log10(step))) + (String(step).includes("25") ? 1 : 0) : step % 1 ? 1 : 0;
  const text = (/** @type {number} */ value) => value.toLocaleString("en-US", { minimumFractionDigits: value === 0 ? 0 : digits, maximumFractionDigits: digits });
  return { tickvals, ticktext: tickvals.map((value, i) => (i === tickvals.length - 1 && i > 0 ? `${text(value)} ${unit}` : text(value))) };
}

/**
 * Whole steps, by the numbers that each life of the rank gives them.
 * @param {number} x0
 * @param {number} x1
 * @param {import("../numbering.js").Stretch[]} [stretches]
 * @param {number} [most]
 */
export function stepTicks(x0, x1, stretches = [], most = 7) {
  const step = Math.max(1, niceStep(Math.max(1, (x1 - x0) / most)));
  /** @type {number[]} */
  const tickvals = [];
  /** @type {string[]} */
  const ticktext = [];
  const lives = stretches.length ? stretches : [{ x: -Infinity, offset: 0 }];
  lives.forEach(({ x, offset }, i) => {
    // Not at the very left: the label would run into those of the vertical axis.
    const from = Math.max(x0 + 0.03 * (x1 - x0), i === 0 ? -Infinity : x - 1);
    const to = Math.min(x1, (lives[i + 1]?.x ?? Infinity) - 1);
    for (let number = Math.ceil((from - offset) / step) * step; number + offset <= to; number += step) {
      const value = number + offset;
      if (number < 0 || !Number.isInteger(value) || value - (tickvals.at(-1) ?? -Infinity) < 0.5 * step) continue;
      tickvals.push(value);
      ticktext.push(count(number));
    }
  });
  return { tickvals, ticktext };
}

/**
 * Local clock times on round moments.
 * @param {number} x0 seconds since `origin_ns`
 * @param {number} x1
 * @param {number} origin_ns
 * @param {number} [most]
 */
export function clockTicks(x0, x1, origin_ns, most = 7) {
  const least = (x1 - x0) / most;
  const step = CLOCK_STEPS_S.find((one) => one >= least) ?? CLOCK_STEPS_S[CLOCK_STEPS_S.length - 1];
  const origin_s = origin_ns / 1e9;
  // Round moments of the reader's day, not of the epoch's.
  const zone_s = new Date(origin_ns / 1e6).getTimezoneOffset() * 60;
  const tickvals = [];
  const ticktext = [];
  for (let local = Math.ceil((origin_s + x0 + 0.03 * (x1 - x0) - zone_s) / step) * step; local <= origin_s + x1 - zone_s; local += step) {
    const date = new Date((local + zone_s) * 1000);
    tickvals.push(local + zone_s - origin_s);
    ticktext.push(
      step >= 86400
        ? date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })
        : date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}), hour12: false }),
    );
  }
  return { tickvals, ticktext };
}

/**
 * Two ticks of a strip: nothing and a round value above all of it.
 * @param {number} highest
 */
export function stripTop(highest) {
  return highest > 0 ? niceStep(highest) : 1;
}
