// What is wrong and what was: order and words of findings. Pure.

import { clock, duration, known } from "./format.js";

/** @typedef {import("./messages.js").Finding} Finding */

const MOST = 500;
const WEIGHT = { critical: 0, warning: 1, info: 2 };

/** Headlines by kind; a kind that this page does not know shows its own name. */
const TITLES = /** @type {Record<string, string>} */ ({ agent_degraded: "The agent shows less than was asked for" });

/**
 * Newest last. A finding that is over does not hold again because an old answer came late.
 * @param {Finding[]} before
 * @param {Finding[]} more
 */
export function mergeFindings(before, more) {
  const all = new Map(before.map((finding) => [finding.id, finding]));
  for (const finding of more) {
    const old = all.get(finding.id);
    if (!old || old.resolved_ns === null || finding.resolved_ns !== null) all.set(finding.id, finding);
  }
  return [...all.values()].sort((a, b) => a.opened_ns - b.opened_ns).slice(-MOST);
}

/**
 * Those that hold, the most urgent first.
 * @param {Finding[]} findings
 */
export function openFindings(findings) {
  return findings.filter((finding) => finding.resolved_ns === null).sort((a, b) => (WEIGHT[a.severity] ?? 3) - (WEIGHT[b.severity] ?? 3) || b.opened_ns - a.opened_ns);
}

/**
 * Those that are over, the one that ended last first.
 * @param {Finding[]} findings
 */
export function pastFindings(findings) {
  return findings.filter((finding) => finding.resolved_ns !== null).sort((a, b) => (b.resolved_ns ?? 0) - (a.resolved_ns ?? 0));
}

/** @param {Finding} finding */
export function findingTitle(finding) {
  const name = finding.kind.replaceAll("_", " ");
  return TITLES[finding.kind] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

/**
 * Since when, or from when until when.
 * @param {Finding} finding
 * @param {number} now_ns
 */
export function findingTime(finding, now_ns) {
  if (!known(finding.resolved_ns)) return `since ${clock(finding.opened_ns)}, for ${duration(Math.max(0, now_ns - finding.opened_ns) / 1e9)}`;
  return `${clock(finding.opened_ns)} to ${clock(finding.resolved_ns)}`;
}

/**
 * @param {Finding} finding
 * @returns {import("./glyphs.js").Severity}
 */
export function findingGlyph(finding) {
  return finding.severity === "critical" ? "crit" : finding.severity === "warning" ? "warn" : "info";
}
