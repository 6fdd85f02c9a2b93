// What there is to be seen: a live map, an old one, or why there is none. Pure.

import { clock, count, known } from "../format.js";

/** @typedef {import("./map-state.js").MapState} MapState */
/** @typedef {import("../messages.js").Run} Run */
/** @typedef {{isDrawn: boolean, isStale: boolean, notice: string, asOf: string, mayAsk: boolean}} Stand  asOf: words before the sentence of a map that is not live */

const SAY_AFTER_MS = 2000;
const STALE_MS = 4000;
/** Frames may be late by that many of their intervals. */
const LATE = 3;

/**
 * @param {object} seen
 * @param {Run | null} seen.run
 * @param {number} seen.rank
 * @param {MapState} seen.map
 * @param {string | null} seen.refused
 * @param {number} seen.waited_ms  since the page was opened
 * @param {number | null} seen.silent_ms  since the last frame came
 * @returns {Stand}
 */
export function mapStand({ run, rank, map, refused, waited_ms, silent_ms }) {
  const { head } = map;
  const one = run?.ranks?.find((each) => each.rank === rank);
  const state = one?.state ?? run?.state;
  if (head && !head.why_not) return drawn(head, state, silent_ms);
  const none = (/** @type {string} */ notice) => ({ isDrawn: false, isStale: false, notice, asOf: "", mayAsk: false });
  if (head?.why_not) return none(`There is no map: ${head.why_not}.`);
  if (refused) return none(`The map cannot be followed: ${refused}`);
  if (state === "ended") return none("This run has ended. The map is live only; snapshots keep what it was like at a moment.");
  if (state === "lost") return none("Contact with this rank is lost, and no map of it was looked at before.");
  if (one && !one.commands.includes("watch_map")) return none("The agent of this rank does not send its map: it is older, or not allowed to.");
  if (waited_ms < SAY_AFTER_MS) return none("Reading the map");
  return none(one && !one.connected ? "Waiting for the agent of this rank to connect." : "Waiting for the first look at the segments.");
}

/**
 * @param {import("./map-state.js").MapHead} head
 * @param {string | undefined} state
 * @param {number | null} silent_ms
 * @returns {Stand}
 */
function drawn(head, state, silent_ms) {
  const isOnRequest = head.rate_hz === 0;
  const late_ms = isOnRequest ? Infinity : Math.max(STALE_MS, (LATE * 1000) / head.rate_hz);
  const isOver = state === "ended" || state === "lost";
  const isStale = isOver || (silent_ms ?? 0) > late_ms;
  const at = known(head.step) ? `step ${count(head.step)}` : clock(head.time_ns);
  const notice = isOver ? `The last look before the run ${state === "ended" ? "ended" : "was lost"}, at ${at}.` : isStale ? `No new look since ${clock(head.time_ns)}.` : isOnRequest ? `So many blocks are looked at on request only. This is ${at}, ${clock(head.time_ns)}.` : "";
  return { isDrawn: true, isStale, notice, asOf: isStale ? "Last known: " : "", mayAsk: isOnRequest && !isOver };
}
