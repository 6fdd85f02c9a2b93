// Policies and their firings in words. Pure.

import { age, clock, count, duration, known, plural, ranksText } from "../format.js";
import { commandTitle } from "./catalogue.js";

/** @typedef {import("../messages.js").Policy} Policy */
/** @typedef {import("../messages.js").PolicyWatch} PolicyWatch */

/**
 * Of a run, or of all of them.
 * @param {Policy[]} policies
 * @param {{id: string, name: string}} run
 */
export function policiesOf(policies, run) {
  return policies.filter((policy) => policy.run === null || policy.run === run.id || policy.run === run.name);
}

/**
 * How it stands, in one line: what it does and what it would do.
 * @param {Policy} policy
 * @returns {{text: string, tone: "off" | "watch" | "holds" | "bad"}}
 */
export function standOfPolicy(policy) {
  if (!policy.is_on) return policy.off_reason ? { text: `Switched off by the server: ${policy.off_reason}`, tone: "bad" } : { text: "Off", tone: "off" };
  return { text: policy.mode === "act" ? "On, acts" : "On, dry run only: it logs what it would do", tone: policy.watching.some((one) => one.holds) ? "holds" : "watch" };
}

/**
 * What it sees on one run now.
 * @param {PolicyWatch} watch
 * @param {number} world_size
 */
export function watchText(watch, world_size) {
  if (watch.note) return watch.note;
  if (!watch.holds) return "The condition does not hold now.";
  const where = watch.ranks.length ? ` on ${ranksText(watch.ranks, world_size)}` : "";
  const since = known(watch.held_steps) ? `, for ${plural(watch.held_steps, "step")}` : known(watch.held_s) ? `, for ${duration(watch.held_s)}` : "";
  return `The condition holds${where}${since}.`;
}

/**
 * @param {Policy} policy
 * @param {number} now_ns
 */
export function firedText(policy, now_ns) {
  if (policy.fired === 0) return "Never fired.";
  const last = known(policy.last_fired_ns) ? `, last ${age((now_ns - policy.last_fired_ns) / 1e9)} ago, at ${clock(policy.last_fired_ns)}` : "";
  const bad = policy.failures_in_a_row > 0 ? ` ${plural(policy.failures_in_a_row, "failure")} in a row; three switch it off.` : "";
  return `Fired ${policy.fired === 1 ? "once" : `${count(policy.fired)} times`}${last}.${bad}`;
}

/** What came of a firing: the server says it in whole sentences once it knows. @param {import("../messages.js").PolicyFiring} firing */
export function firingText(firing) {
  const what = `${commandTitle(firing.command)}${firing.mode === "dry_run" ? ", dry run" : ""}`;
  if (firing.result) return firing.result;
  if (firing.state === "logged") return `${what}: logged only, nothing was sent.`;
  return `${what}: ${firing.state === "waiting" ? "waiting for its receipt" : firing.state}`;
}
