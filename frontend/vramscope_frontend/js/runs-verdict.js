// The sentence over all runs: which one needs me? Pure.

import { rangeText } from "./findings/growth-evidence.js";
import { count, known, plural, sizeText } from "./format.js";
import { headroomSeverity } from "./run-state.js";

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./verdict.js").Verdict} Verdict */

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
  const critical = live.filter((row) => row.run.finding?.severity === "critical");
  const warned = live.filter((row) => row.run.finding?.severity === "warning");
  const others = [
    warned.length && (critical.length ? `${plural(warned.length, "more run has", "more runs have")} a warning.` : warned.length === 1 ? `${warned[0].run.name}: ${warned[0].run.finding?.summary}` : `${warned.length} runs have a warning.`),
    (tight.length || critical.length) && partly.length && `${plural(partly.length, "run has", "runs have")} lost ranks.`,
    stale_rows.length && `${plural(stale_rows.length, "run")} without data for more than 3 s.`,
    lost_rows.length && `${plural(lost_rows.length, "run")} lost without an end.`,
  ].filter(Boolean).join(" ");
  if (critical.length) return ofCritical(critical, live.length, others);
  if (tight.length) {
    const first = tight[0];
    return {
      severity: headroomSeverity(first.free, first.limit) ?? "warn",
      key: `tight-${tight.map((row) => row.run.id).join()}`,
      sentence: tight.length === 1
        ? `${first.run.name} is tight: ${sizeText(first.free)} of head-room at the peak so far.`
        : `${tight.length} of ${plural(live.length, "live run")} are tight: ${tight.slice(0, 2).map((row) => `${row.run.name} has ${sizeText(row.free)} left`).join(", ")}.`,
      second: others,
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
      second: others,
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
      second: others,
    };
  }
  return {
    severity: stale_rows.length || lost_rows.length ? "warn" : "info",
    key: "none-live",
    sentence: stale_rows.length ? `No run sends data now; ${plural(stale_rows.length, "run has", "runs have")} been silent for more than 3 s.` : "No run is live.",
    second: stale_rows.length ? "Whether these jobs go on is not known." : others || "The last runs are listed below.",
  };
}

/** The sentence over all runs names as many. */
const NAMED = 2;

/**
 * @param {{run: Run}[]} rows
 * @param {number} live
 * @param {string} others
 * @returns {Verdict}
 */
function ofCritical(rows, live, others) {
  const soonest = [...rows].sort((a, b) => (a.run.finding?.forecast?.early_s ?? Infinity) - (b.run.finding?.forecast?.early_s ?? Infinity));
  const [{ run }] = soonest;
  const filling = soonest.filter((row) => row.run.finding?.forecast);
  const key = `critical-${soonest.map((row) => row.run.finding?.id).join()}`;
  if (rows.length === 1) return { severity: "crit", key, sentence: `${run.name}: ${run.finding?.summary ?? ""}`, second: others };
  const named = soonest.slice(0, NAMED);
  const sentence = filling.length === rows.length
    ? `${rows.length} of ${plural(live, "live run")} will run out of memory: ${named.map((row) => `${row.run.name} in ${rangeText(row.run.finding?.forecast?.early_s ?? NaN, row.run.finding?.forecast?.late_s ?? NaN)}`).join(", ")}.`
    : `${rows.length} of ${plural(live, "live run")} need you: ${named.map((row) => row.run.name).join(", ")}${rows.length > NAMED ? " and others" : ""}.`;
  return { severity: "crit", key, sentence, second: filling.length === rows.length ? others : [`${run.name}: ${run.finding?.summary ?? ""}`, others].filter(Boolean).join(" ") };
}
