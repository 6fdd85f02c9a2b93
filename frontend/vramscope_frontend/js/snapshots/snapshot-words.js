// What the list says of a snapshot. Pure.

import { count, duration, known, percent, sizeText } from "../format.js";

/** @typedef {import("../messages.js").SnapshotInfo} SnapshotInfo */

/** @type {Record<string, string>} */
const CONTENTS = {
  segments: "segments and blocks",
  state: "live blocks",
  alloc: "every event",
  all: "every event, frees with stacks",
  user: "the script's own recording",
};

/** @type {Record<string, string>} */
const ORIGINS = { command: "asked for", rule: "taken by a rule", upload: "uploaded" };

/** @param {SnapshotInfo} info */
export function contentsText(info) {
  const what = CONTENTS[info.mode] ?? info.mode;
  if (info.origin === "upload") return "as uploaded";
  return info.mode === "segments" || info.stacks ? what : `${what}, no stacks`;
}

/** @param {SnapshotInfo} info */
export function originText(info) {
  return ORIGINS[info.origin] ?? info.origin;
}

/**
 * The state of a snapshot that cannot be opened yet, or not at all; null for one that can.
 * @param {SnapshotInfo} info
 */
export function stateText(info) {
  switch (info.state) {
    case "complete":
      return null;
    case "receiving":
      return `arriving, ${known(info.wire_bytes) && info.wire_bytes > 0 ? percent(info.received_bytes / info.wire_bytes) : sizeText(info.received_bytes)}`;
    case "incomplete":
      return `incomplete: ${info.reason || "its sender is gone"}`;
    default:
      return `failed: ${info.reason || "no reason was given"}`;
  }
}

/**
 * What a snapshot is called: its file name, else when it was taken.
 * @param {SnapshotInfo} info
 */
export function nameOf(info) {
  if (info.name) return info.name;
  return known(info.step) ? `Step ${count(info.step)}` : "Snapshot";
}

/**
 * How long ago, for the title of a row.
 * @param {SnapshotInfo} info
 * @param {number} now_ns
 */
export function ageText(info, now_ns) {
  return known(info.taken_ns) ? `${duration(Math.max(0, (now_ns - info.taken_ns) / 1e9))} ago` : "";
}
