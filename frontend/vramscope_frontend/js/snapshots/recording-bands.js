// The band over a recording: what the job was doing, and what it named itself. Pure.

import { duration, known } from "../format.js";
import { STEP_DURATION } from "../fields.js";
import { stretchText } from "../phases.js";
import { partsOf, placeParts } from "../step-parts.js";

/** @typedef {{x0: number, x1: number, name: string, title: string}} RecordingBand */
/** @typedef {{left: number, width: number, label: string, title: string}} PlacedBand */

/** Less would not be seen. */
const LEAST_PX = 3;
/** Of 12 px text, on the wide side. */
const CHARACTER_PX = 6.6;
const PADDING_PX = 8;
/** A recording of a job that names much of what it does. */
const MOST = 300;
const OPTIMIZER_STEP = "Optimizer.step#";
/** Done in a moment, and of no interest. */
const ZERO_GRAD = "Optimizer.zero_grad#";
/** The row of a step is taken right after the end that was recorded. */
const SAME_END_S = 0.5;

/**
 * Phases that the agent told of, forward and backward as far as steps were split, and the scopes that
 * PyTorch recorded: the wider first, so that what lies within them is drawn on top. By the order of
 * events nothing is known of times.
 * @param {Pick<import("../messages.js").RecordingTimeline, "unit" | "start" | "end_x" | "scopes" | "steps">} timeline
 * @param {import("../phases.js").Stretch[]} stretches of the rank
 * @param {import("../series.js").Table | null} rows of its steps, with times since the epoch
 * @returns {RecordingBand[]}
 */
export function recordingBands({ unit, start, end_x, scopes, steps }, stretches, rows) {
  if (unit !== "us") return [];
  const phases = stretches.map((one) => ({ x0: one.start_ns / 1000, x1: one.end_ns === null ? end_x : one.end_ns / 1000, name: one.name, title: stretchText(one) }));
  const named = scopes.filter((scope) => !scope.name.startsWith(ZERO_GRAD)).map((scope) => ({ x0: scope.start, x1: scope.end, name: scope.name.startsWith(OPTIMIZER_STEP) ? "optimizer" : scope.name, title: `${scope.name}, ${duration((scope.end - scope.start) / 1e6)}` }));
  // What was recorded of a step of the optimizer is where it was; of its part only the length is known.
  const split = rows ? steps.flatMap((step) => partsOfStep(rows, step.x / 1e6)).filter((part) => !named.some((scope) => scope.name === part.name && scope.x1 >= part.x0 && scope.x0 <= part.x1)) : [];
  return [...phases, ...split, ...named].filter((band) => band.x1 >= start && band.x0 <= end_x).sort((a, b) => (b.x1 - b.x0) - (a.x1 - a.x0)).slice(0, MOST);
}

/**
 * Forward, backward and optimizer of the step that ended at a time; empty where it was not split.
 * @param {import("../series.js").Table} rows
 * @param {number} end_t
 * @returns {RecordingBand[]}
 */
function partsOfStep(rows, end_t) {
  const index = rows.t.findIndex((t) => Math.abs(t - end_t) < SAME_END_S && t >= end_t - 0.001);
  const took_us = rows.columns[STEP_DURATION]?.[index];
  const parts = index < 0 ? null : partsOf(rows, index);
  if (!parts || !known(took_us)) return [];
  return placeParts(parts, end_t - took_us / 1e6, end_t).map((part) => ({ ...part, x0: part.x0 * 1e6, x1: part.x1 * 1e6, title: `${part.title}\n${duration(part.x1 - part.x0)}` }));
}

/**
 * @param {RecordingBand[]} bands
 * @param {{left: number, width: number}} geometry
 * @param {[number, number]} range
 * @returns {PlacedBand[]}
 */
export function placeRecordingBands(bands, { left, width }, [from, to]) {
  const px = (/** @type {number} */ x) => left + (Math.min(1, Math.max(0, (x - from) / Math.max(to - from, 1e-9))) * width);
  return bands.filter((band) => band.x1 >= from && band.x0 <= to).map((band) => {
    const own = Math.max(LEAST_PX, px(band.x1) - px(band.x0));
    const begin = Math.min(px(band.x0), left + width - own);
    return { left: begin, width: own, label: band.name.length * CHARACTER_PX + PADDING_PX <= own ? band.name : "", title: band.title };
  });
}
