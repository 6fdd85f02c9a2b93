// The first sentence of a run: its state and its head-room, unless something was found that is more
// urgent. What is found is judged by the server.

import { withFindings } from "./findings/finding-verdict.js";
import { age, clock, count, day, duration, inUnit, known, ofText, plural, sizeText, tableUnit } from "./format.js";
import { recentRestart, standOf, turnText } from "./restarts.js";
import { headroomSeverity, headroomText } from "./run-state.js";
import { standVerdict } from "./stand-verdict.js";

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./messages.js").Rank} Rank */
/** @typedef {import("./run-state.js").Pill} Pill */
/** @typedef {import("./glyphs.js").Severity} Severity */
/** @typedef {{used: number, usedKnown: boolean, step: number | null, isEarlier?: boolean}} Peak `isEarlier`: of a process that is no more */
/** @typedef {{rank: number, free: number, least: number | null, most: number | null, ranks: number, heard: number}} WorstRank */
/** @typedef {import("./findings/messages.js").Finding} Finding */
/** @typedef {{severity: Severity, key: string, sentence: string, second: string, when?: string, more?: string}} Verdict `when`: it ended; `more`: what gave way to what is also wrong */

/** Until then the first steps may still raise the peak (optimizer state, workspaces). */
export const WARM_UP_STEPS = 40;
const SCOPE = "Only head-room is judged here: what was found could not be read.";

/**
 * @param {object} seen
 * @param {Run} seen.run
 * @param {Pill} seen.pill
 * @param {number | null} seen.limit_bytes
 * @param {Peak | null} seen.peak highest of the whole run on the rank that is shown
 * @param {WorstRank | null} seen.worst where several ranks are known
 * @param {number | null} seen.firstStep first step that was seen
 * @param {number} seen.now_ns
 * @param {number | null} seen.silent_s
 * @param {string | null} seen.viewOnly why the reader cannot act
 * @param {number} seen.samplesLost
 * @param {boolean} [seen.isNamed] whether every byte has a name, at the end of the last step
 * @param {Finding[]} [seen.findings] that the run shows now, the most urgent first
 * @param {boolean} [seen.isJudged] whether it is known what is found and what is not
 * @param {number | null} [seen.flatSteps] steps over which no growth was measured
 * @returns {Verdict}
 */
export function verdictOf(seen) {
  const { pill, findings = [] } = seen;
  const state = pill.state === "live" || pill.state === "stale" || pill.state === "lost" || pill.state === "ended" ? pill.state : "other";
  const ranksAreGone = pill.state !== "stale" && standOf(seen.run, seen.now_ns) !== null;
  const plain = plainVerdict(seen);
  const verdict = withFindings(plain, { findings, state: ranksAreGone && state !== "live" ? "other" : state, silent_s: seen.silent_s, ranksAreGone, world_size: seen.run.world_size ?? 1 });
  // What was found was found in the model of a device: that is said wherever the sentence does not.
  return seen.run.emulated && verdict.sentence !== plain.sentence && !/emulated/.test(verdict.second) ? { ...verdict, second: `${verdict.second} On an emulated device.`.trimStart() } : verdict;
}

/**
 * What is said where nothing is found.
 * @param {Parameters<typeof verdictOf>[0]} seen
 * @returns {Verdict}
 */
function plainVerdict(seen) {
  const { pill } = seen;
  const stand = pill.state === "disconnected" || pill.state === "stale" ? null : standOf(seen.run, seen.now_ns);
  if (stand) return standVerdict(seen.run, stand, seen.now_ns, alsoTight(seen));
  switch (pill.state) {
    case "disconnected":
      return {
        severity: "quiet",
        key: "disconnected",
        sentence: `You see the state of ${clock(seen.run.last_seen_ns)}. This page is cut off; the job does not notice.`,
        second: "Actions are off until the page is connected again.",
      };
    case "lost":
      return lost(seen);
    case "ended":
      return ended(seen);
    case "stale":
      return stale(seen);
    case "waiting":
    case "loading":
      return { severity: "quiet", key: "waiting", sentence: "The job is attached; its first sample has not arrived yet.", second: "This page changes by itself." };
    default:
      return alive(seen);
  }
}

/**
 * Head-room, where something more urgent makes the sentence.
 * @param {Parameters<typeof verdictOf>[0]} seen
 */
function alsoTight({ run, worst, peak, limit_bytes }) {
  const free = worst && worst.ranks > 1 ? worst.free : peak && known(limit_bytes) ? Math.max(0, limit_bytes - peak.used) : null;
  const severity = headroomSeverity(free, limit_bytes);
  if (run.state !== "live" || !known(free) || !known(limit_bytes) || severity === "ok" || severity === null) return "";
  return `${headroomText(free, limit_bytes)} of head-room at the peak so far.`;
}

/**
 * @param {Parameters<typeof verdictOf>[0]} seen
 * @returns {Verdict}
 */
function alive(seen) {
  const { run, limit_bytes, peak, worst } = seen;
  if (!peak || !known(limit_bytes)) {
    return {
      severity: "info",
      key: "no-limit",
      sentence: peak ? `${sizeText(peak.used)} used at the peak so far; the size of the device is not known.` : "Live, but no memory counter is known yet.",
      second: secondLine(seen, peak ? "" : "Counters begin when the job first uses a GPU."),
    };
  }
  const free = Math.max(0, limit_bytes - peak.used);
  const seen_steps = known(run.step) && known(seen.firstStep) ? run.step - seen.firstStep : null;
  if (known(seen_steps) && seen_steps < WARM_UP_STEPS && headroomSeverity(free, limit_bytes) === "ok") {
    return {
      severity: "info",
      key: "warm-up",
      sentence: `Watching since step ${count(seen.firstStep)}. A verdict needs about ${WARM_UP_STEPS} steps; ${ofText(peak.used, limit_bytes)} used at the peak so far${run.emulated ? ", emulated" : ""}.`,
      second: secondLine(seen, ""),
    };
  }
  if (worst && worst.ranks > 1) return ofRanks(seen, worst, limit_bytes);
  const severity = headroomSeverity(free, limit_bytes);
  const tight = severity !== "ok";
  const where = run.emulated ? ` on an emulated ${sizeText(limit_bytes)} device` : "";
  const flat = known(seen.flatSteps) && seen.flatSteps > WARM_UP_STEPS ? plural(seen.flatSteps, "step") : "";
  return {
    severity: tight ? (severity ?? "info") : "ok",
    key: `headroom-${severity}`,
    sentence: tight
      ? `Tight. ${headroomText(free, limit_bytes)} of head-room${where} at the peak${flat ? `; flat for ${flat}` : " so far"}.`
      : isHealthy(seen)
        ? `Healthy${run.emulated ? " on an emulated device" : ""}. ${sizeText(free)} of head-room at the peak${flat ? `, no growth over the last ${flat}` : ""}.`
        : `${sizeText(free)} of head-room${where} at the peak so far.`,
    second: secondLine(seen, `${seen.isNamed ? "Every byte is named. " : ""}${peakLine(peak, limit_bytes)}`),
  };
}

/**
 * Nothing urgent is found, and enough was seen to find something.
 * @param {Parameters<typeof verdictOf>[0]} seen
 */
function isHealthy({ run, firstStep, isJudged = false, findings = [] }) {
  const steps = known(run.step) && known(firstStep) ? run.step - firstStep : 0;
  return isJudged && steps >= WARM_UP_STEPS && !findings.some((finding) => finding.severity !== "info");
}

/**
 * @param {Parameters<typeof verdictOf>[0]} seen
 * @param {WorstRank} worst
 * @param {number} limit_bytes
 * @returns {Verdict}
 */
function ofRanks(seen, worst, limit_bytes) {
  const severity = headroomSeverity(worst.free, limit_bytes);
  const unit = tableUnit(limit_bytes);
  const healthy = isHealthy(seen) ? "Healthy. " : "";
  const found = healthy && severity === "ok" ? "No finding is open on any of them." : "";
  if (known(worst.most) && worst.heard === worst.ranks && inUnit(worst.most, unit) === inUnit(worst.free, unit)) {
    return {
      severity: severity ?? "info",
      key: `ranks-${severity}-alike`,
      sentence: `${severity === "ok" ? healthy : "Tight. "}All ${worst.ranks} ranks are alike: ${sizeText(worst.free)} of head-room at the peak so far.`,
      second: secondLine(seen, found),
    };
  }
  const others = known(worst.least) && known(worst.most) ? `; the others have ${rangeText(worst.least, worst.most, unit)}` : "";
  return {
    severity: severity ?? "info",
    key: `ranks-${severity}-${worst.rank}`,
    sentence: `${severity === "ok" ? healthy : "Tight. "}Rank ${worst.rank} of ${worst.ranks} has the least head-room: ${sizeText(worst.free)} at the peak so far${others}.`,
    second: secondLine(seen, found),
  };
}

/**
 * @param {number} least
 * @param {number} most
 * @param {{name: string, bytes: number}} unit
 */
function rangeText(least, most, unit) {
  const [from, to] = [inUnit(least, unit), inUnit(most, unit)];
  return from === to ? sizeText(least) : `${from} to ${to} ${unit.name}`;
}

/**
 * @param {Parameters<typeof verdictOf>[0]} seen
 * @returns {Verdict}
 */
function stale(seen) {
  const { peak, limit_bytes, silent_s } = seen;
  const rank = (seen.run.ranks ?? []).find((one) => !one.connected);
  const free = peak && known(limit_bytes) ? `${sizeText(Math.max(0, limit_bytes - peak.used))} of head-room` : "state not known";
  return {
    severity: "quiet",
    key: "stale",
    sentence: `Last known: ${isHealthy(seen) && headroomSeverity(peak && known(limit_bytes) ? limit_bytes - peak.used : null, limit_bytes) === "ok" ? "healthy, " : ""}${free}${seen.run.emulated ? " on an emulated device" : ""}, ${age(silent_s)} ago.`,
    second: rank
      ? `The agent on ${rank.host} does not answer. If the job goes on, its samples are kept there and follow later.`
      : "The connection stands, but nothing arrives. Whether the job goes on is not known.",
  };
}

/**
 * @param {Parameters<typeof verdictOf>[0]} seen
 * @returns {Verdict}
 */
function lost(seen) {
  const { run, peak, limit_bytes, silent_s } = seen;
  const last = peak && known(limit_bytes) ? ` Highest seen: ${ofText(peak.used, limit_bytes)}.` : "";
  return {
    severity: "warn",
    key: "lost",
    sentence: `Contact lost${known(run.step) ? ` at step ${count(run.step)}` : ""}, without an end.`,
    second: `Process killed, host down or network cut: not known. Silent for ${age(silent_s)}.${last}${seen.isJudged && !(seen.findings ?? []).length ? " No finding was open." : ""}${lossText(seen.samplesLost)}`,
  };
}

/**
 * @param {Parameters<typeof verdictOf>[0]} seen
 * @returns {Verdict}
 */
function ended(seen) {
  const { run, peak, limit_bytes, now_ns } = seen;
  const flat = seen.isJudged && known(seen.flatSteps) && !(seen.findings ?? []).length ? ", no growth" : "";
  const of = peak && known(limit_bytes) ? ` Peak ${ofText(peak.used, limit_bytes)}${run.emulated ? ", emulated" : ""}${flat}.` : "";
  const ranks = run.ranks ?? [];
  const failed = ranks.find((rank) => known(rank.exit_code) && rank.exit_code !== 0) ?? ranks.find((rank) => rank.end_reason === "exception");
  const when = `Finished ${day(run.ended_ns, now_ns)}${known(run.ended_ns) ? ` after ${duration((run.ended_ns - run.started_ns) / 1e9)}` : ""}.`;
  if (failed) {
    const code = known(failed.exit_code) ? ` with exit code ${failed.exit_code}` : " with an exception";
    return {
      severity: "warn",
      key: "failed",
      sentence: `Ended${code}${known(run.step) ? ` at step ${count(run.step)}` : ""}.${of}`,
      when,
      second: [failed.end_text ? `${ranks.length > 1 ? `Rank ${failed.rank}: ` : ""}${failed.end_text}` : "", when].filter(Boolean).join(" "),
    };
  }
  const detached = ranks.length > 0 && ranks.every((rank) => rank.end_reason === "detach");
  const well = ranks.length > 0 && ranks.every((rank) => rank.end_reason === "exit" && rank.exit_code === 0);
  return {
    severity: "ok",
    key: detached ? "detached" : "ended",
    sentence: `${detached ? `Detached at step ${count(run.step)}; the job may go on.` : well ? "Ended well." : "Ended."}${of}`,
    when,
    second: `${when}${lossText(seen.samplesLost)}`,
  };
}

/**
 * @param {Peak} peak
 * @param {number} limit_bytes
 */
function peakLine(peak, limit_bytes) {
  const at = known(peak.step) && peak.step > 0 ? ` (step ${count(peak.step)}${peak.isEarlier ? ", before the restart" : ""})` : "";
  const outside = peak.usedKnown ? "" : " What is used outside of PyTorch is not known.";
  return `${at ? "The largest step needed" : "The highest use was"} ${ofText(peak.used, limit_bytes)}${at}.${outside}`;
}

/**
 * One idea: the reader's rights before the device, before the scope of the judgement.
 * @param {Parameters<typeof verdictOf>[0]} seen
 * @param {string} evidence
 */
function secondLine(seen, evidence) {
  if (seen.viewOnly) return seen.viewOnly;
  const words = seen.run.emulated ? "No GPU here: tensors of the real script run through a model of the allocator. Times are those of the CPU." : seen.isJudged ? "" : SCOPE;
  const restart = recentRestart(seen.run, seen.now_ns);
  const news = restart && `${turnText(restart, seen.run.world_size)}, ${age((seen.now_ns - restart.time_ns) / 1e9)} ago.`;
  return [evidence, news || (seen.samplesLost > 0 ? lossText(seen.samplesLost).trim() : words)].filter(Boolean).join(" ");
}

/** @param {number} lost */
function lossText(lost) {
  return lost > 0 ? ` ${plural(lost, "sample is", "samples are")} missing; the steps that arrived are exact.` : "";
}
