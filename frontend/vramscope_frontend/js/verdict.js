// The first sentence of a run. It speaks of head-room and of the state of the run, because that is
// what is known; nothing here judges leaks or fragmentation.

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
/** @typedef {{severity: Severity, key: string, sentence: string, second: string}} Verdict */

/** Until then the first steps may still raise the peak (optimizer state, workspaces). */
export const WARM_UP_STEPS = 40;
const SCOPE = "Only head-room is judged here, not leaks or fragmentation.";

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
 * @returns {Verdict}
 */
export function verdictOf(seen) {
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
      sentence: `Watching since step ${count(seen.firstStep)}. The first ${WARM_UP_STEPS} steps can still raise the peak; ${ofText(peak.used, limit_bytes)} so far${run.emulated ? ", emulated" : ""}.`,
      second: secondLine(seen, ""),
    };
  }
  if (worst && worst.ranks > 1) return ofRanks(seen, worst, limit_bytes);
  const severity = headroomSeverity(free, limit_bytes);
  const tight = severity !== "ok";
  const where = run.emulated ? ` on an emulated ${sizeText(limit_bytes)} device` : "";
  return {
    severity: tight ? (severity ?? "info") : "ok",
    key: `headroom-${severity}`,
    sentence: tight
      ? `Tight. ${headroomText(free, limit_bytes)} of head-room${where} at the peak so far.`
      : `${sizeText(free)} of head-room${where} at the peak so far.`,
    second: secondLine(seen, `${seen.isNamed ? "Every byte is named. " : ""}${peakLine(peak, limit_bytes)}`),
  };
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
  if (known(worst.most) && worst.heard === worst.ranks && inUnit(worst.most, unit) === inUnit(worst.free, unit)) {
    return {
      severity: severity ?? "info",
      key: `ranks-${severity}-alike`,
      sentence: `${severity === "ok" ? "" : "Tight. "}All ${worst.ranks} ranks are alike: ${sizeText(worst.free)} of head-room at the peak so far.`,
      second: secondLine(seen, ""),
    };
  }
  const others = known(worst.least) && known(worst.most) ? `; the others have ${rangeText(worst.least, worst.most, unit)}` : "";
  return {
    severity: severity ?? "info",
    key: `ranks-${severity}-${worst.rank}`,
    sentence: `${severity === "ok" ? "Rank" : "Tight. Rank"} ${worst.rank} of ${worst.ranks} has the least head-room: ${sizeText(worst.free)} at the peak so far${others}.`,
    second: secondLine(seen, ""),
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
    sentence: `Last known: ${free}${seen.run.emulated ? " on an emulated device" : ""}, ${age(silent_s)} ago.`,
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
    second: `Process killed, host down or network cut: not known. Silent for ${age(silent_s)}.${last}${lossText(seen.samplesLost)}`,
  };
}

/**
 * @param {Parameters<typeof verdictOf>[0]} seen
 * @returns {Verdict}
 */
function ended(seen) {
  const { run, peak, limit_bytes, now_ns } = seen;
  const of = peak && known(limit_bytes) ? ` Peak ${ofText(peak.used, limit_bytes)}${run.emulated ? ", emulated" : ""}.` : "";
  const ranks = run.ranks ?? [];
  const failed = ranks.find((rank) => known(rank.exit_code) && rank.exit_code !== 0) ?? ranks.find((rank) => rank.end_reason === "exception");
  const when = `Finished ${day(run.ended_ns, now_ns)}${known(run.ended_ns) ? ` after ${duration((run.ended_ns - run.started_ns) / 1e9)}` : ""}.`;
  if (failed) {
    const code = known(failed.exit_code) ? ` with exit code ${failed.exit_code}` : " with an exception";
    return {
      severity: "warn",
      key: "failed",
      sentence: `Ended${code}${known(run.step) ? ` at step ${count(run.step)}` : ""}.${of}`,
      second: [failed.end_text ? `${ranks.length > 1 ? `Rank ${failed.rank}: ` : ""}${failed.end_text}` : "", when].filter(Boolean).join(" "),
    };
  }
  const detached = ranks.length > 0 && ranks.every((rank) => rank.end_reason === "detach");
  const well = ranks.length > 0 && ranks.every((rank) => rank.end_reason === "exit" && rank.exit_code === 0);
  return {
    severity: "ok",
    key: detached ? "detached" : "ended",
    sentence: `${detached ? `Detached at step ${count(run.step)}; the job may go on.` : well ? "Ended well." : "Ended."}${of}`,
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
  const words = seen.run.emulated ? "No GPU here: tensors of the real script run through a model of the allocator. Times are those of the CPU." : SCOPE;
  const restart = recentRestart(seen.run, seen.now_ns);
  const news = restart && `${turnText(restart, seen.run.world_size)}, ${age((seen.now_ns - restart.time_ns) / 1e9)} ago.`;
  return [evidence, news || (seen.samplesLost > 0 ? lossText(seen.samplesLost).trim() : words)].filter(Boolean).join(" ");
}

/** @param {number} lost */
function lossText(lost) {
  return lost > 0 ? ` ${plural(lost, "sample is", "samples are")} missing; the steps that arrived are exact.` : "";
}

/**
 * The sentence over all runs.
 * @param {{run: Run, state: string, free: number | null, limit: number | null, silent_s: number | null}[]} rows
 * @returns {Verdict}
 */
export function verdictOverRuns(rows) {
  const live = rows.filter((row) => row.state === "live" || row.state === "waiting");
  const stale_rows = rows.filter((row) => row.state === "stale");
  const lost_rows = rows.filter((row) => row.state === "lost");
  const tight = live.filter((row) => ["crit", "warn"].includes(headroomSeverity(row.free, row.limit) ?? ""));
  tight.sort((a, b) => (a.free ?? 0) - (b.free ?? 0));
  const partly = live.filter((row) => row.run.ranks_lost);
  const others = [
    tight.length && partly.length && `${plural(partly.length, "run has", "runs have")} lost ranks.`,
    stale_rows.length && `${plural(stale_rows.length, "run")} without data for more than 3 s.`,
    lost_rows.length && `${plural(lost_rows.length, "run")} lost without an end.`,
  ].filter(Boolean).join(" ");
  if (tight.length) {
    const first = tight[0];
    return {
      severity: headroomSeverity(first.free, first.limit) ?? "warn",
      key: `tight-${tight.map((row) => row.run.id).join()}`,
      sentence: tight.length === 1
        ? `${first.run.name} is tight: ${sizeText(first.free)} of head-room at the peak so far.`
        : `${tight.length} of ${plural(live.length, "live run")} are tight: ${tight.slice(0, 2).map((row) => `${row.run.name} has ${sizeText(row.free)} left`).join(", ")}.`,
      second: others || SCOPE,
    };
  }
  if (partly.length) {
    const [first] = partly;
    const of = (/** @type {Run} */ run) => `${count(run.ranks_lost)} of ${count(run.world_size)}`;
    return {
      severity: "warn",
      key: `partly-${partly.map((row) => row.run.id).join()}`,
      sentence: partly.length === 1
        ? `${first.run.name} has lost ${of(first.run)} ranks; the others are live.`
        : `${partly.length} of ${plural(live.length, "live run")} have lost ranks: ${partly.slice(0, 2).map((row) => `${row.run.name} ${of(row.run)}`).join(", ")}.`,
      second: others || SCOPE,
    };
  }
  if (live.length) {
    const known_rows = live.filter((row) => known(row.free)).sort((a, b) => (a.free ?? 0) - (b.free ?? 0));
    const least = known_rows[0];
    return {
      severity: others ? "info" : "ok",
      key: `live-${live.length}`,
      sentence: !least
        ? `${plural(live.length, "run")} live.`
        : live.length === 1
          ? `One run live, ${sizeText(least.free)} of head-room at the peak so far.`
          : `${live.length} runs live; the least head-room is ${sizeText(least.free)}, in ${least.run.name}.`,
      second: others || SCOPE,
    };
  }
  return {
    severity: stale_rows.length || lost_rows.length ? "warn" : "info",
    key: "none-live",
    sentence: stale_rows.length ? `No run sends data now; ${plural(stale_rows.length, "run has", "runs have")} been silent for more than 3 s.` : "No run is live.",
    second: stale_rows.length ? "Whether these jobs go on is not known." : others || "The last runs are listed below.",
  };
}
