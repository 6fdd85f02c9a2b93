// The sentence of a moment: what is live, and whose most of it is. Pure.

import { count, plural, sizeText } from "../format.js";

/** @typedef {import("../messages.js").MomentPayload} MomentPayload */
/** @typedef {import("../messages.js").SnapshotInfo} SnapshotInfo */

/** @type {Record<string, string>} */
const FOR_WHAT = {
  activations: ", kept for the backward pass",
  parameters: ", parameters",
  optimizer: ", optimizer state",
  gradients: "",
  backward: "",
};

/**
 * @param {MomentPayload} moment
 * @returns {string}
 */
export function momentSentence(moment) {
  const first = moment.by_line[0];
  if (!first) return "Nothing was live at this moment.";
  const what = moment.has_history ? (moment.moment === moment.peak ? `The peak is ${sizeText(moment.live_bytes)}` : `${sizeText(moment.live_bytes)} are live at the cursor`) : `${sizeText(moment.live_bytes)} were live`;
  if (!moment.has_stacks) return `${what}; who allocated it was not recorded.`;
  const part = (/** @type {import("../messages.js").HeldMemory} */ held) => `${held.label}${FOR_WHAT[held.category ?? ""] ?? ""}`;
  const second = moment.by_line[1];
  // What was there before accuses nobody: the largest that has a name is said too.
  if (first.category === "unknown" && second) return `${what}: ${sizeText(first.bytes)} from before the recording, ${sizeText(second.bytes)} ${part(second)}.`;
  return `${what}, ${sizeText(first.bytes)} of it ${part(first)}.`;
}

/**
 * Which recording, and how much of it is seen.
 * @param {SnapshotInfo} info
 * @param {MomentPayload} moment
 * @param {string} shown what of it is shown
 */
export function momentSecond(info, moment, shown) {
  const where = [typeof info.step === "number" ? `Snapshot at step ${count(info.step)}` : "Snapshot", typeof info.rank === "number" ? `of rank ${info.rank}` : ""].filter(Boolean).join(" ");
  if (!moment.has_history) return `${where}, ${plural(moment.blocks, "live block")}. It has no history: what was live when it was taken, not how it came to be.`;
  const cursor = moment.moment === moment.peak ? " The cursor is at the highest moment." : "";
  return `${where}, ${plural(moment.entries, "event")}${shown ? `, ${shown}` : ""}.${cursor}`;
}
