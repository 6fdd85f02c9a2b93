// The largest batch that fits, as the card says it. Pure: the server advises, this finds the words.

import { count, gib, known, percent, plural, sizeText } from "./format.js";

/**
 * @typedef {object} BatchAdvice
 * @property {string} sentence
 * @property {number} batch_size
 * @property {number} low
 * @property {number | null} high null: not known
 * @property {"high" | "medium" | "low"} confidence
 * @property {number | null} current
 * @property {number | null} accumulation
 * @property {number | null} gain
 * @property {number} world_size
 * @property {number} peak_bytes at that size, at most
 * @property {number} limit_bytes
 * @property {number} allowed_bytes
 * @property {boolean} is_replayed
 * @property {string[]} basis
 * @property {string} open_question
 * @property {{batch_size: number, accumulation: number} | null} keeping
 * @property {Record<string, number | boolean>} params of set_batch_size
 * @property {number} deciding_rank
 */

/**
 * @typedef {object} ProbeOffer
 * @property {number} batch_size
 * @property {number | null} accumulation
 * @property {number} back
 * @property {number} steps
 * @property {boolean} changes_global_batch
 * @property {Record<string, number | boolean>} params
 * @property {[string, string][]} costs
 */

/**
 * @typedef {object} ProbeState
 * @property {string} id
 * @property {"checking" | "changing" | "watching" | "going_back" | "done" | "failed"} state
 * @property {string} text
 * @property {number} batch_size
 * @property {number} back
 */

/**
 * What the server answers.
 * @typedef {object} BatchAnswer
 * @property {string} run
 * @property {number} head_room
 * @property {{reason: string, text: string} | null} silent
 * @property {BatchAdvice | null} advice
 * @property {ProbeOffer | null} probe
 * @property {boolean} is_replaying
 * @property {ProbeState | null} probing
 */

const CONFIDENCE = { high: "sure", medium: "fairly sure", low: "more may fit" };

/**
 * The number in large, and its range.
 * @param {BatchAdvice} advice
 */
export function headline(advice) {
  const { low, high, batch_size } = advice;
  const range = known(high) ? (low === high ? "" : `range ${count(low)} to ${count(high)}`) : `at least ${count(low)}`;
  return { number: count(batch_size), range, confidence: CONFIDENCE[advice.confidence] };
}

/**
 * Rows "what", "how much" under the number.
 * @param {BatchAdvice} advice
 * @returns {[string, string][]}
 */
export function facts(advice) {
  const { current, gain, world_size, accumulation } = advice;
  /** @type {[string, string][]} */
  const rows = [];
  if (known(current)) rows.push(["Now", `${count(current)}${known(accumulation) && accumulation > 1 ? ` × ${plural(accumulation, "pass", "passes")}` : ""}`]);
  if (known(gain) && gain !== 0) rows.push(["Samples at a time", `${gain > 0 ? "+" : "−"}${count(Math.abs(gain))}${world_size > 1 ? ` on ${world_size} ranks` : ""}`]);
  rows.push(["Peak at that size", `at most ${sizeText(advice.peak_bytes)} of ${sizeText(advice.limit_bytes)}`]);
  return rows;
}

/**
 * Exact bytes, for the hover of the peak.
 * @param {BatchAdvice} advice
 */
export function exactPeak(advice) {
  return `${gib(advice.peak_bytes, 2)} GiB, ${count(advice.peak_bytes)} bytes; ${percent(1 - advice.allowed_bytes / advice.limit_bytes)} of the limit stay free`;
}

/**
 * What may be set with one click, the one that keeps the global batch first.
 * @param {BatchAdvice} advice
 * @returns {{label: string, note: string, params: Record<string, number | boolean>}[]}
 */
export function choices(advice) {
  const { keeping, current, batch_size } = advice;
  const found = [];
  if (keeping) found.push({ label: `Set ${count(keeping.batch_size)} × ${keeping.accumulation}…`, note: `${plural(keeping.accumulation, "pass", "passes")} a step: as many samples a step as now.`, params: { ...keeping } });
  if (batch_size !== current && batch_size !== keeping?.batch_size) found.push({ label: `Set ${count(batch_size)}…`, note: keeping ? "" : "Each optimizer step then sees another number of samples.", params: advice.params });
  return found;
}

/**
 * How far a probe is; empty when none is under way and none has failed.
 * @param {ProbeState | null} probing
 */
export function probeText(probing) {
  if (!probing) return "";
  const { state, batch_size, back, text } = probing;
  if (state === "checking") return `Probing: a dry run with ${count(batch_size)} samples…`;
  if (state === "changing") return `Probing: changing to ${count(batch_size)} samples…`;
  if (state === "watching") return `Probing: watching steps with ${count(batch_size)} samples…`;
  if (state === "going_back") return `Probing: going back to ${count(back)} samples…`;
  if (state === "done") return `Probed with ${count(batch_size)} samples, and back to ${count(back)}.`;
  return `The probe failed: ${text}`;
}

/** @param {ProbeState | null} probing */
export function isProbing(probing) {
  return probing !== null && probing.state !== "done" && probing.state !== "failed";
}
