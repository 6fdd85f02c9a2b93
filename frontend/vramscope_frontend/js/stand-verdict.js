// The first sentence while ranks are gone: who, since when, and whether they may come back. Pure.

import { age, count, known, plural, ranksText } from "./format.js";
import { lastWords } from "./restarts.js";

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./restarts.js").Stand} Stand */
/** @typedef {import("./verdict.js").Verdict} Verdict */

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * @param {Run} run
 * @param {Stand} stand
 * @param {number} now_ns
 * @param {string} also what else is wrong; empty if nothing is
 * @returns {Verdict}
 */
export function standVerdict(run, stand, now_ns, also) {
  const verdict = stand.mayComeBack ? (stand.back > 0 ? comingBack(run, stand) : mayComeBack(run, stand)) : gone(run, stand, now_ns);
  return { severity: "warn", ...verdict, second: [verdict.second, also && `Also: ${also}`].filter(Boolean).join(" ") };
}

/** @param {Run} run */
const ranksOf = (run) => Math.max(run.world_size, (run.ranks ?? []).length);

/** @param {Stand} stand */
function stepOf({ gone }) {
  const steps = gone.map((rank) => rank.step).filter(known);
  return steps.length ? ` at step ${count(Math.max(...steps))}` : "";
}

/**
 * The one that said most: a reason is worth more than silence.
 * @param {Run} run
 * @param {Stand} stand
 */
function firstWords(run, { gone }) {
  const rank = gone.find((one) => one.end_text) ?? gone.find((one) => one.state === "ended") ?? gone[0];
  return `${ranksOf(run) > 1 ? `Rank ${rank.rank}` : "It"}: ${lastWords(rank)}.`;
}

/**
 * @param {Run} run
 * @param {Stand} stand
 */
function comingBack(run, stand) {
  return { key: "restarting", sentence: `Restarting: ${stand.back} of ${ranksOf(run)} ranks are back.`, second: firstWords(run, stand) };
}

/**
 * @param {Run} run
 * @param {Stand} stand
 */
function mayComeBack(run, stand) {
  const [rank] = stand.gone;
  const who = ranksOf(run) === 1 ? "The job" : capital(ranksText(stand.gone.map((one) => one.rank), ranksOf(run)));
  const used = known(rank.max_restarts) && rank.max_restarts > 0 ? `${count(rank.restart_count ?? 0)} of ${plural(rank.max_restarts, "restart")} used.` : "";
  return {
    key: "may-restart",
    sentence: `${who} ended${stepOf(stand)}; ${rank.launcher || "the launcher"} may start ${stand.gone.length > 1 ? "them" : "it"} again.`,
    second: [used, firstWords(run, stand)].filter(Boolean).join(" "),
  };
}

/**
 * @param {Run} run
 * @param {Stand} stand
 * @param {number} now_ns
 */
function gone(run, stand, now_ns) {
  const ranks = ranksOf(run);
  const others = ranks - stand.gone.length;
  const rest = others === 1 ? "the other one is live" : `the other ${others} are live`;
  const lost = stand.gone.filter((rank) => rank.state === "lost");
  const [first] = stand.gone;
  if (lost.length === 0) {
    const how = known(first.exit_code) ? `with exit code ${first.exit_code}` : "with an exception";
    return {
      key: `ended-${stand.gone.length}`,
      sentence: stand.gone.length === 1 ? `Rank ${first.rank} of ${ranks} ended ${how}${stepOf(stand)}; ${rest}.` : `${stand.gone.length} of ${ranks} ranks ended ${how}${stepOf(stand)}; ${rest}.`,
      second: first.end_text ? `Rank ${first.rank}: ${first.end_text}` : "The others may wait for it in their next collective.",
    };
  }
  const silent_s = (now_ns - Math.max(...lost.map((rank) => rank.last_seen_ns ?? 0))) / 1e9;
  const only = lost.length === stand.gone.length;
  const who = stand.gone.length === 1 ? `Rank ${first.rank} of ${ranks} is ${only ? "lost" : "gone"}` : `${stand.gone.length} of ${ranks} ranks are ${only ? "lost" : "gone"}`;
  return {
    key: `lost-${stand.gone.map((rank) => rank.rank).join()}`,
    sentence: `${who}: nothing heard${stepOf(stand).replace(" at ", " since ")}; ${rest}.`,
    second: `Killed, host down or network cut: not known. Silent for ${age(silent_s)}; the others may wait for it in their next collective.`,
  };
}
