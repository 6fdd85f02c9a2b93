// The list of runs as rows: state, what it says, what is left, in order of urgency. Pure.

import { within } from "./findings/finding-verdict.js";
import { drawableForecast, rangeText } from "./findings/growth-evidence.js";
import { findingGlyph } from "./findings.js";
import { age, count, known, ofText, sizeText } from "./format.js";
import { restartsText } from "./restarts.js";
import { headroomSeverity, headroomText, silence_s, stateOf } from "./run-state.js";

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./glyphs.js").Severity} Severity */
/** @typedef {"all" | "live" | "found" | "ended" | "lost"} Filter */

/**
 * @typedef {object} RunRow
 * @property {Run} run
 * @property {"waiting" | "live" | "stale" | "lost" | "ended"} state
 * @property {number | null} used at the highest sample or reserved peak that is known
 * @property {number | null} limit
 * @property {number | null} free
 * @property {number | null} silent_s
 * @property {{severity: Severity, glyph: string, text: string}} says
 * @property {string | null} full_in when memory is full at this pace, if that can be told
 * @property {number} full_s the early end of it
 */

/**
 * @param {Run} run
 * @param {number | null} highest_used highest sample that the trend of the run has
 * @param {number} now_ns
 * @returns {RunRow}
 */
export function runRow(run, highest_used, now_ns) {
  const candidates = [run.used_bytes, run.peak_reserved_bytes, highest_used].filter(known);
  const used = candidates.length ? Math.max(...candidates) : null;
  const limit = run.device_total_bytes;
  const free = known(used) && known(limit) ? Math.max(0, limit - used) : null;
  const row = { run, state: stateOf(run, now_ns), used, limit, free, silent_s: silence_s(run, now_ns) };
  const forecast = row.state === "live" ? drawableForecast(run.finding?.forecast) : null;
  return { ...row, says: saysOf(row, now_ns), full_in: forecast && rangeText(forecast.early_s, forecast.late_s), full_s: forecast?.early_s ?? Infinity };
}

const GLYPHS = /** @type {Record<string, string>} */ ({ crit: "⬢", warn: "▲", info: "○" });

/**
 * What was found, if it is as urgent as anything else that could be said.
 * @param {Run} run
 * @returns {RunRow["says"] | null}
 */
function foundOf({ finding }) {
  if (!finding || (finding.severity === "info" && finding.stage !== "suspected")) return null;
  const severity = findingGlyph(finding);
  // When it is full has a column of its own.
  const text = finding.forecast ? finding.summary.replace(/\.? Out of memory in .*$/, "") : finding.summary;
  return { severity, glyph: GLYPHS[severity], text: text.replace(/\.$/, "") };
}

/** A restart longer ago says nothing about what the run does now. */
const NEWS_S = 3600;

/**
 * @param {Omit<RunRow, "says" | "full_in" | "full_s">} row
 * @param {number} now_ns
 * @returns {RunRow["says"]}
 */
function saysOf({ run, state, used, limit, free, silent_s }, now_ns) {
  const on = run.emulated && known(limit) ? ` on an emulated ${sizeText(limit)} device` : "";
  const headroom = known(free) && known(limit) ? `${sizeText(free)} of head-room${on}` : "head-room not known";
  const found = foundOf(run);
  switch (state) {
    case "stale":
      if (found) return { severity: "warn", glyph: "▲", text: `No data for ${age(silent_s)}; last known: ${within(found.text)}` };
      return { severity: "warn", glyph: "▲", text: `No data for ${age(silent_s)}; last seen with ${headroom}` };
    case "lost":
      return { severity: "warn", glyph: "▲", text: `Contact lost ${age(silent_s)} ago without an end${known(run.step) ? `, at step ${count(run.step)}` : ""}` };
    case "ended": {
      const failed = known(run.exit_code) && run.exit_code !== 0;
      if (found && run.finding?.kind === "oom") return found;
      const how = failed ? `Ended with exit code ${run.exit_code}` : "Ended";
      return { severity: failed ? "warn" : "info", glyph: failed ? "▲" : "■", text: known(used) && known(limit) ? `${how}, peak ${ofText(used, limit)}` : how };
    }
    case "waiting":
      return { severity: "info", glyph: "○", text: "Attached; the first sample has not arrived yet" };
    default: {
      const severity = headroomSeverity(free, limit);
      const isNews = known(run.restarted_ns) && (now_ns - run.restarted_ns) / 1e9 < NEWS_S;
      const restarted = isNews ? `; ${restartsText(run.restarts, run.restarted_ns, now_ns)}` : "";
      if (found && (found.severity === "crit" || (severity !== "crit" && !run.ranks_lost))) return found;
      if (run.ranks_lost) return { severity: severity === "crit" ? "crit" : "warn", glyph: severity === "crit" ? "⬢" : "▲", text: `${count(run.ranks_lost)} of ${count(run.world_size)} ranks lost${restarted || `; ${headroom}`}` };
      if (severity === "ok") return { severity: "ok", glyph: "✓", text: `${run.finding === null ? "Healthy, " : ""}${headroom}${restarted}` };
      if (severity === null || !known(free) || !known(limit)) return { severity: "info", glyph: "○", text: headroom + restarted };
      return { severity, glyph: severity === "crit" ? "⬢" : "▲", text: `Tight: ${headroomText(free, limit)} of head-room${on}${restarted}` };
    }
  }
}

const STATE_ORDER = { live: 0, waiting: 0, stale: 0, lost: 1, ended: 2 };
const SEVERITY_ORDER = { crit: 0, warn: 1, info: 2, ok: 2, quiet: 2 };

/**
 * Live first, then by severity, then by what is left; older ones by their end.
 * @param {RunRow[]} rows
 */
export function sortRows(rows) {
  return [...rows].sort((a, b) => {
    const by_state = STATE_ORDER[a.state] - STATE_ORDER[b.state];
    if (by_state) return by_state;
    if (a.run.state !== "live") return (b.run.ended_ns ?? b.run.last_seen_ns ?? b.run.started_ns) - (a.run.ended_ns ?? a.run.last_seen_ns ?? a.run.started_ns);
    return SEVERITY_ORDER[a.says.severity] - SEVERITY_ORDER[b.says.severity] || (a.full_s === b.full_s ? 0 : a.full_s - b.full_s) || (a.free ?? Infinity) - (b.free ?? Infinity) || b.run.started_ns - a.run.started_ns;
  });
}

/**
 * @param {RunRow} row
 * @param {Filter} filter
 */
export function passes(row, filter) {
  if (filter === "all") return true;
  if (filter === "found") return Object.values(row.run.findings_open ?? {}).some((amount) => amount > 0) || foundOf(row.run) !== null;
  return filter === "live" ? row.run.state === "live" : row.state === filter;
}

/**
 * @param {RunRow} row
 * @param {string} text
 */
export function matches(row, text) {
  const { run } = row;
  const hosts = (run.ranks ?? []).map((rank) => rank.host);
  return [run.name, run.id, run.user, run.script, run.device_name ?? "", run.finding?.summary ?? "", ...hosts].some((one) => one.toLowerCase().includes(text.toLowerCase()));
}
