// What the agents say of themselves: rate, cost, GIL, losses, and whether the picture is whole. Pure.

import { count, known, percent, plural } from "./format.js";
import { openFindings } from "./findings.js";

/** @typedef {import("./messages.js").Rank} Rank */
/** @typedef {import("./messages.js").Finding} Finding */
/** @typedef {import("./messages.js").AgentStatus} AgentStatus */

/** Parts in the order in which they are shown; others follow by name. */
const PARTS = ["sampler", "transport", "hooks"];
const LOW_SHARE = 0.9;

/** @param {AgentStatus | null} status */
export function rateText(status) {
  if (!status) return "–";
  const rate = round1(status.rate_hz);
  const wanted = status.account?.wanted_rate_hz;
  return known(wanted) && status.rate_hz < LOW_SHARE * wanted ? `${rate} of ${round1(wanted)}` : rate;
}

/**
 * Share of a core since attach, by part; null where this agent keeps no such account.
 * @param {AgentStatus | null} status
 * @returns {Record<string, number> | null}
 */
export function costByPart(status) {
  const elapsed_us = status?.account?.elapsed_us ?? 0;
  if (!status?.account || elapsed_us <= 0) return null;
  return Object.fromEntries(Object.entries(status.account.cpu_us ?? {}).map(([part, cpu_us]) => [part, cpu_us / elapsed_us]));
}

/** @param {(AgentStatus | null)[]} statuses */
export function partNames(statuses) {
  const names = new Set(statuses.flatMap((status) => Object.keys(status?.account?.cpu_us ?? {})));
  return [...PARTS.filter((name) => names.delete(name)), ...[...names].sort()];
}

/**
 * Microseconds for which a turn of the sampler held the GIL on average.
 * @param {AgentStatus | null} status
 */
export function gilPerTurn_us(status) {
  const { gil_us, turns } = status?.account ?? {};
  return known(gil_us) && known(turns) && turns > 0 ? gil_us / turns : null;
}

/**
 * Whether the numbers on this page can be trusted, in one sentence.
 * @param {Rank[]} ranks
 * @param {Finding[]} findings
 * @returns {import("./verdict.js").Verdict | null} null while no agent has said anything
 */
export function trustVerdict(ranks, findings) {
  const statuses = ranks.flatMap((rank) => rank.status ?? []);
  const lost = ranks.reduce((sum, rank) => sum + (rank.samples_lost ?? 0) + (rank.steps_lost ?? 0), 0);
  const costs = statuses.map((status) => status.cost_fraction);
  const errors = statuses.reduce((sum, status) => sum + (status.guard_errors ?? 0), 0);
  const cost = costs.length ? `Watching costs ${finePercent(Math.max(...costs))} of a core${ranks.length > 1 ? " on the dearest rank" : ""}. ` : "";
  const degraded = openFindings(findings).filter((finding) => finding.kind === "agent_degraded");
  if (degraded.length) {
    return { severity: degraded[0].severity === "info" ? "info" : "warn", key: "degraded", sentence: `Less is shown than was asked for${ranks.length > 1 ? ` on ${plural(degraded.length, "rank")}` : ""}. ${degraded[0].summary}`, second: `${cost}What is shown was measured; nothing is filled in.` };
  }
  if (!statuses.length && lost === 0) return null;
  const parts = [lost === 0 ? "nothing was lost" : `${count(lost)} rows were lost`, errors === 0 ? "no error of the agent" : plural(errors, "error of the agent", "errors of the agent")];
  return { severity: lost === 0 && errors === 0 ? "ok" : "info", key: `trust-${lost === 0}-${errors === 0}`, sentence: `${lost === 0 && errors === 0 ? "The picture is whole" : "The picture has gaps"}: ${parts.join(", ")}.`, second: `${cost}What is not known is shown as “–”, never as 0.` };
}

/**
 * What costs little is not 0.
 * @param {number} share
 */
function finePercent(share) {
  return share < 0.0095 ? `${(share * 100).toFixed(2)}\u202f%` : percent(share);
}

/** @param {number} value */
function round1(value) {
  return String(Math.round(value * 10) / 10);
}
