// What is wrong and what was: order, titles and words of findings. Pure.

import { clock, duration, known } from "./format.js";

/** @typedef {import("./findings/messages.js").Finding} Finding */

const MOST = 500;
const WEIGHT = { critical: 0, warning: 1, info: 2 };

/** Titles by kind, where the finding brings none of its own; a kind that this page does not know shows its own name. */
const TITLES = /** @type {Record<string, string>} */ ({
  agent_degraded: "The agent shows less than was asked for",
  leak: "Memory is kept step after step",
  cycle_growth: "Reference cycles hold memory",
  retained_exception: "A caught exception keeps its tensors",
  retention: "Memory is kept that could be free",
  fragmentation: "Free memory is in pieces",
  thrash: "The cache is flushed again and again",
  oom: "Out of memory",
  near_oom: "Memory is filling up",
  non_torch_memory: "Memory outside of PyTorch",
  other_process: "Another process uses this device",
  pinned_growth: "Pinned host memory grows",
  host_growth: "Host memory grows",
  rank_imbalance: "One rank is different",
  oversized_cache: "The cache is larger than needed",
  first_step_state: "The first step did not show all that is needed",
  recording_overhead: "Recording costs time",
});

/** Kinds with their titles, for a choice. @type {[string, string][]} */
export const KINDS = Object.entries(TITLES);

/** Kinds in the words of a list of what is looked for. */
const KINDS_LOOKED_FOR = /** @type {Record<string, string>} */ ({ leak: "leak", cycle_growth: "reference cycles", fragmentation: "fragmentation", thrash: "thrash", other_process: "other processes", non_torch_memory: "memory outside of PyTorch", pinned_growth: "pinned and host memory", host_growth: "pinned and host memory", rank_imbalance: "ranks that differ", near_oom: "running out of memory", oom: "running out of memory", agent_degraded: "an agent that shows less than was asked for", recording_overhead: "what recording costs" });

/**
 * Newest last. A late answer of the API does not undo what the feed has said since.
 * @param {Finding[]} before
 * @param {Finding[]} more
 */
export function mergeFindings(before, more) {
  const all = new Map(before.map((finding) => [finding.id, finding]));
  for (const finding of more) {
    const old = all.get(finding.id);
    if (!old || isNewer(finding, old)) all.set(finding.id, finding);
  }
  return [...all.values()].sort((a, b) => a.opened_ns - b.opened_ns).slice(-MOST);
}

/**
 * @param {Finding} finding
 * @param {Finding} old
 */
function isNewer(finding, old) {
  const [at, before] = [finding, old].map((one) => one.updated_ns ?? one.history?.at(-1)?.time_ns);
  if (known(at) && known(before) && at !== before) return at > before;
  return old.resolved_ns === null || finding.resolved_ns !== null;
}

/**
 * @param {Finding} a
 * @param {Finding} b
 */
function byUrgency(a, b) {
  return (WEIGHT[a.severity] ?? 3) - (WEIGHT[b.severity] ?? 3) || b.opened_ns - a.opened_ns;
}

/**
 * Those that hold and that nobody muted, the most urgent first.
 * @param {Finding[]} findings
 */
export function openFindings(findings) {
  return findings.filter((finding) => finding.resolved_ns === null && !finding.muted).sort(byUrgency);
}

/**
 * Those that hold, but that somebody does not want to hear of.
 * @param {Finding[]} findings
 */
export function mutedFindings(findings) {
  return findings.filter((finding) => finding.resolved_ns === null && finding.muted).sort(byUrgency);
}

/** Whether it is over; what held when its rank or its run ended is not. @param {Pick<Finding, "resolved_ns" | "state">} finding */
export function isPast(finding) {
  return finding.resolved_ns !== null && finding.state !== "final";
}

/**
 * Those that are over, the one that ended last first.
 * @param {Finding[]} findings
 */
export function pastFindings(findings) {
  return findings.filter(isPast).sort((a, b) => (b.resolved_ns ?? 0) - (a.resolved_ns ?? 0));
}

/**
 * Findings that a run shows now: those that hold, or held when it ended.
 * @param {Finding[]} findings
 * @param {{state: string}} run
 */
export function presentFindings(findings, run) {
  if (run.state === "live") return openFindings(findings);
  return findings.filter((finding) => !finding.muted && !isPast(finding)).sort(byUrgency);
}

/**
 * Ranks that have a finding of their own, more than worth knowing.
 * @param {Finding[]} present
 */
export function accusedRanks(present) {
  return new Set(present.flatMap((finding) => (finding.ranks.length === 1 && finding.severity !== "info" ? finding.ranks : [])));
}

/** @param {Pick<Finding, "kind"> & {evidence?: Record<string, any>}} finding */
export function findingTitle(finding) {
  if (typeof finding.evidence?.title === "string" && finding.evidence.title) return finding.evidence.title;
  const name = finding.kind.replaceAll("_", " ");
  return TITLES[finding.kind] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

/**
 * "leak, fragmentation, thrash": each once.
 * @param {string[]} kinds
 */
export function lookedForText(kinds) {
  return [...new Set(kinds.map((kind) => KINDS_LOOKED_FOR[kind]).filter(Boolean))].join(", ");
}

/**
 * Since when, or from when until when.
 * @param {Finding} finding
 * @param {number} now_ns
 */
export function findingTime(finding, now_ns) {
  if (!known(finding.resolved_ns)) return `since ${clock(finding.opened_ns)}, for ${duration(Math.max(0, now_ns - finding.opened_ns) / 1e9)}`;
  const [from, to] = [clock(finding.opened_ns), clock(finding.resolved_ns)];
  return from === to ? `at ${from}` : `${from} to ${to}`;
}

/**
 * @param {{severity: string}} finding
 * @returns {import("./glyphs.js").Severity}
 */
export function findingGlyph(finding) {
  return finding.severity === "critical" ? "crit" : finding.severity === "warning" ? "warn" : "info";
}
