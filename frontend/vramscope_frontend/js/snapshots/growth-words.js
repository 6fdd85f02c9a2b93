// What grew, in words, and which moments can be compared. Pure.

import { plural, sizeText } from "../format.js";
import { stepText } from "./recording-steps.js";

/** @typedef {import("../messages.js").GrowthPayload} GrowthPayload */

const MOST_CHOICES = 60;

/**
 * Moments that a person would compare: ends of steps, evenly, and both ends of the recording.
 * @param {{steps: import("../messages.js").RecordedStep[], end: number, has_history: boolean}} recording
 * @returns {{value: number, text: string}[]}
 */
export function momentChoices({ steps, end, has_history }) {
  if (!has_history) return [{ value: end, text: "this snapshot" }];
  const every = Math.max(1, Math.ceil(steps.length / MOST_CHOICES));
  const ends = steps.filter((_, i) => i % every === 0 || i === steps.length - 1);
  const choices = [{ value: -1, text: "before the first event" }, ...ends.map((step) => ({ value: step.moment, text: `end of ${stepText(step)}` }))];
  if (choices.at(-1)?.value !== end && steps.length === 0) choices.push({ value: end, text: "the end" });
  return choices;
}

/** @param {GrowthPayload} growth */
export function growthSentence(growth) {
  const change = growth.after_bytes - growth.before_bytes;
  const grown = growth.rows.filter((row) => row.after_bytes > row.before_bytes);
  if (grown.length === 0) return change < 0 ? `${sizeText(-change)} less than before; nothing grew.` : "Nothing grew.";
  const first = grown[0];
  const amount = first.after_bytes - first.before_bytes;
  const blocks = first.after_blocks - first.before_blocks;
  const more = blocks > 0 ? ` in ${plural(blocks, "more block", "more blocks")}` : "";
  const all = change > 0 ? `${sizeText(change)} more than before` : change < 0 ? `${sizeText(-change)} less than before` : "As much as before";
  return `${all}: ${first.label} grew by ${sizeText(amount)}${more}.`;
}

/**
 * The two ends of steps that lie nearest to the ends of a range; null where that is one and the same.
 * @param {import("../messages.js").RecordedStep[]} steps
 * @param {[number, number]} range
 * @returns {[number, number] | null} their moments
 */
export function endsNear(steps, [from, to]) {
  const near = (/** @type {number} */ x) => steps.reduce((best, step) => (Math.abs(step.x - x) < Math.abs(best.x - x) ? step : best), steps[0]);
  if (steps.length < 2) return null;
  const [first, last] = [near(from), near(to)];
  return first.moment < last.moment ? [first.moment, last.moment] : null;
}
