// The sentence of a run that stands still because somebody paused it. Pure.

import { age, clock, count, known, plural } from "../format.js";

/** @typedef {import("../verdict.js").Verdict} Verdict */

/**
 * @param {import("./pause-state.js").Pause} pause
 * @param {Verdict} otherwise what would be said
 * @param {number} world_size
 * @param {number} now_ns
 * @returns {Verdict}
 */
export function pauseVerdict(pause, otherwise, world_size, now_ns) {
  const left_s = known(pause.until_ns) ? (pause.until_ns - now_ns) / 1e9 : null;
  const who = pause.by ? `Paused by ${pause.by}` : "Paused";
  const ends = known(left_s) && left_s > 0 ? `; goes on by itself in ${age(left_s)}, at ${clock(pause.until_ns)}` : "; its time is over, waiting for word of it";
  const also = otherwise.severity === "crit" || otherwise.severity === "warn" ? ` Also: ${otherwise.sentence}` : " It keeps all its memory.";
  return {
    severity: otherwise.severity === "crit" ? "crit" : "quiet",
    key: "paused",
    sentence: `Paused${known(pause.step) ? ` after step ${count(pause.step)}` : ""}${world_size > 1 ? ` on all ${plural(world_size, "rank")}` : ""}: training stands still.`,
    second: `${who}${ends}.${also}`,
  };
}
