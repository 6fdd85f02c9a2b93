// The sentence on a device of a rank beside the one that is watched in full. Pure.

import { known, sizeText } from "./format.js";
import { currentDevice, deviceName, deviceOf } from "./limits.js";
import { headroomSeverity, headroomText } from "./run-state.js";

/**
 * @param {import("./messages.js").Rank} rank
 * @param {number} index of the device
 * @param {Pick<import("./run-summary.js").Summary, "limit" | "peak">} summary of that device
 * @returns {import("./verdict.js").Verdict}
 */
export function deviceVerdict(rank, index, { limit, peak }) {
  const device = deviceOf(rank, index);
  const watched = currentDevice(rank);
  const name = device ? deviceName(device) : `cuda:${index}`;
  const free = known(limit.bytes) && peak?.usedKnown ? Math.max(0, limit.bytes - peak.used) : null;
  return {
    severity: headroomSeverity(free, limit.bytes) ?? "ok",
    key: `device-${index}`,
    sentence: !peak ? `Nothing is known of ${name} yet.` : known(free) && known(limit.bytes) ? `${name} has ${headroomText(free, limit.bytes)} of head-room at the peak.` : `On ${name} PyTorch held ${sizeText(peak.used)} at the peak; what is free there is not known.`,
    second: `Rank ${rank.rank} uses it beside ${watched ? deviceName(watched) : "another"}, on which its steps end: samples tell of it, steps and categories do not.`,
  };
}
