// Steps of a recording: what they are called, where they begin and end. Pure.

import { count } from "../format.js";

/** @typedef {import("../messages.js").RecordedStep} RecordedStep */
/** @typedef {import("../messages.js").RecordingTimeline} RecordingTimeline */

const SHOWN_STEPS = 3;

/**
 * How a step is called: by the job's own number if somebody told it.
 * @param {RecordedStep} step
 */
export function stepText(step) {
  return step.step === null ? `recorded step ${count(step.ordinal)}` : `step ${count(step.step)}`;
}

/**
 * Index of the step that a place lies in; the number of steps for what comes after the last end.
 * @param {RecordedStep[]} steps
 * @param {number} x
 */
export function stepIndexAt(steps, x) {
  const index = steps.findIndex((step) => step.x >= x);
  return index < 0 ? steps.length : index;
}

/**
 * The step that a place lies in, in words; empty where no steps are known.
 * @param {RecordedStep[]} steps
 * @param {number} x
 */
export function stepTextAt(steps, x) {
  if (steps.length === 0) return "";
  const index = stepIndexAt(steps, x);
  if (index < steps.length) return stepText(steps[index]);
  const last = steps[steps.length - 1];
  return stepText({ ...last, step: last.step === null ? null : last.step + 1, ordinal: last.ordinal + 1 });
}

/**
 * From the end of the step before to its own end.
 * @param {RecordedStep[]} steps
 * @param {number} index
 * @param {[number, number]} whole
 * @returns {[number, number]}
 */
export function stepRange(steps, index, whole) {
  return [index > 0 ? steps[index - 1].x : whole[0], index < steps.length ? steps[index].x : whole[1]];
}

/**
 * What a recording shows at first: its last steps, all of it if there are few.
 * @param {RecordedStep[]} steps
 * @param {[number, number]} whole
 * @returns {[number, number] | null} null for all of it
 */
export function firstRange(steps, whole) {
  if (steps.length <= SHOWN_STEPS) return null;
  const tail = whole[1] - steps[steps.length - 1].x;
  const last = steps[steps.length - 1].x - steps[steps.length - 2].x;
  // What follows the last end may be a step that never ended, and then it is of interest.
  const first = tail > 0.2 * last ? steps.length - SHOWN_STEPS : steps.length - SHOWN_STEPS - 1;
  return [steps[Math.max(0, first)].x, whole[1]];
}

/**
 * Index of the highest moment in a range; -1 if there is none.
 * @param {RecordingTimeline} timeline
 * @param {[number, number]} range
 */
export function highestIn({ x, total }, [from, to]) {
  let best = -1;
  for (let i = 0; i < x.length; i++) if (x[i] >= from && x[i] <= to && (best < 0 || total[i] > total[best])) best = i;
  return best;
}

/**
 * Index of the last moment that is not later than a place.
 * @param {number[]} x
 * @param {number} at
 */
export function lastBefore(x, at) {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] <= at) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/**
 * Index of the moment with this number, or of the nearest before it.
 * @param {number[]} moments
 * @param {number} moment
 */
export function indexOfMoment(moments, moment) {
  return lastBefore(moments, moment);
}
