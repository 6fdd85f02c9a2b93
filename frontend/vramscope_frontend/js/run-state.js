// The state pill. It must never be wrong: it follows from what the server says, from the age of the
// last sample by the server's clock, and from whether this page still hears the server.

import { age, count, duration, known, percent, sizeText } from "./format.js";

import { standOf } from "./restarts.js";

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./socket.js").Link} Link */
/** @typedef {"loading" | "disconnected" | "waiting" | "live" | "stale" | "lost" | "ended"} State */
/** @typedef {"dot" | "ring" | "square" | "cross" | "alert"} Shape */
/** @typedef {{state: State, shape: Shape, text: string, emulated: boolean, retry: boolean}} Pill */

export const STALE_AFTER_S = 3;

/**
 * Seconds since the last data of a run, by the server's clock.
 * @param {Run} run
 * @param {number} now_ns
 */
export function silence_s(run, now_ns) {
  return known(run.last_seen_ns) ? Math.max(0, (now_ns - run.last_seen_ns) / 1e9) : null;
}

/**
 * State of a run as the server's words and the age of its data have it, whoever looks.
 * @param {Run} run
 * @param {number} now_ns
 * @returns {"waiting" | "live" | "stale" | "lost" | "ended"}
 */
export function stateOf(run, now_ns) {
  if (run.state !== "live") return run.state;
  const silent_s = silence_s(run, now_ns);
  if (silent_s === null) return "waiting";
  return silent_s > STALE_AFTER_S ? "stale" : "live";
}

/**
 * @param {object} seen
 * @param {Run | null} seen.run
 * @param {Link} seen.link
 * @param {number} seen.now_ns
 * @param {number} seen.monotonic_ms
 * @param {number | null} [seen.rate_hz]
 * @param {boolean} [seen.mayControl]
 * @returns {Pill}
 */
export function pillOf({ run, link, now_ns, monotonic_ms, rate_hz = null, mayControl = true }) {
  const emulated = run?.emulated ?? false;
  if (link.state !== "open") return { ...linkPill(link, monotonic_ms), emulated };
  if (!run) return { state: "loading", shape: "ring", text: "Reading the run", emulated, retry: false };
  const words = (/** @type {(string | false | null)[]} */ ...parts) => parts.filter(Boolean).join(" · ");
  const kind = emulated && "emulated";
  const state = stateOf(run, now_ns);
  const silent_s = silence_s(run, now_ns);
  const stand = standOf(run, now_ns);
  if (stand?.mayComeBack && (state === "ended" || state === "lost")) return { state: "lost", shape: "ring", emulated, retry: false, text: words("Ended, may be restarted", `silent for ${age(silent_s)}`, kind) };
  switch (state) {
    case "ended":
      return { state, shape: "square", emulated, retry: false, text: words("Ended", endText(run), known(run.step) && `${count(run.step)} steps`, known(run.ended_ns) && duration((run.ended_ns - run.started_ns) / 1e9), kind) };
    case "lost":
      return { state, shape: "cross", emulated, retry: false, text: words("Lost", `silent for ${age(silent_s)}`, kind) };
    case "waiting":
      return { state, shape: "ring", emulated, retry: false, text: words("Waiting for the first sample", kind) };
    case "stale":
      return { state, shape: "ring", emulated, retry: false, text: words(`No data for ${age(silent_s)}`, run.ranks_connected === 0 ? "agent not connected" : null, kind) };
    default:
      return { state, shape: "dot", emulated, retry: false, text: words(emulated ? `Emulated ${sizeText(run.device_total_bytes)}` : "Live", known(run.step) && `step ${count(run.step)}`, ranksText(run), stand?.mayComeBack ? "restarting" : null, known(rate_hz) && `${Math.round(rate_hz * 10) / 10} Hz`, !mayControl && "view only") };
  }
}

/**
 * @param {Link} link
 * @param {number} monotonic_ms
 * @returns {{state: State, shape: Shape, text: string, retry: boolean}}
 */
function linkPill(link, monotonic_ms) {
  if (link.state === "refused") return { state: "disconnected", shape: "alert", text: `The server refused this page: ${link.reason}`, retry: true };
  if (link.attempt === 0) return { state: "loading", shape: "ring", text: "Connecting", retry: false };
  if (link.state === "connecting") return { state: "disconnected", shape: "alert", text: `Reconnecting · try ${link.attempt}`, retry: false };
  const left_s = Math.max(0, Math.ceil((link.retry_at_ms - monotonic_ms) / 1000));
  return { state: "disconnected", shape: "alert", text: `Reconnecting · this page lost its server · try ${link.attempt} in ${left_s} s`, retry: true };
}

/** @param {Run} run */
function ranksText(run) {
  if (run.world_size <= 1) return null;
  return run.ranks_connected < run.world_size ? `${run.ranks_connected} of ${run.world_size} ranks` : `${run.world_size} ranks`;
}

/** @param {Run} run */
function endText(run) {
  if (run.finding?.kind === "oom" && run.finding.severity === "critical") return "out of memory";
  const ranks = run.ranks ?? [];
  const failed = ranks.find((rank) => known(rank.exit_code) && rank.exit_code !== 0) ?? ranks.find((rank) => rank.end_reason === "exception");
  if (failed) return known(failed.exit_code) ? `exit ${failed.exit_code}` : "exception";
  if (ranks.length && ranks.every((rank) => rank.end_reason === "detach")) return "detached";
  return ranks.some((rank) => rank.exit_code === 0) ? "exit 0" : null;
}

/**
 * Severity of what is left, as in the head-room scale.
 * @param {number | null} free
 * @param {number | null} limit
 * @returns {"crit" | "warn" | "ok" | null}
 */
export function headroomSeverity(free, limit) {
  if (!known(free) || !known(limit) || limit <= 0) return null;
  const share = free / limit;
  return share < 0.025 ? "crit" : share < 0.05 ? "warn" : "ok";
}

/**
 * "1.9 GiB (1.4 %)".
 * @param {number} free
 * @param {number} limit
 */
export function headroomText(free, limit) {
  return `${sizeText(free)} (${percent(free / limit)})`;
}
