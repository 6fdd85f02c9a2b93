// Words that many commands share: when they happen, and that results stay as they are.

import { ranksText } from "../format.js";

/** @type {[string, string]} */
export const SAME = ["Training", "results unchanged"];

/**
 * When a command happens, as a row of what it costs.
 * @param {import("./catalogue.js").CommandEntry} entry
 * @param {number[]} ranks
 * @param {number} world_size
 * @returns {[string, string]}
 */
export function whenRow(entry, ranks, world_size) {
  if (entry.place === "agent thread") return ["When", "at once, beside the training"];
  if (entry.sameStep && ranks.length > 1) return ["When", `at the end of the same step on ${ranksText(ranks, world_size)}, or on none of them; gives up after 30 s`];
  return ["When", ranks.length > 1 ? "on each rank at the end of its next step; gives up after 30 s" : "at the end of the next step; gives up after 30 s"];
}

/**
 * Why a part of the ranks is no choice, as a row of what it costs.
 * @param {import("./catalogue.js").CommandEntry} entry
 * @param {number} world_size
 * @returns {[string, string] | null}
 */
export function wholeRunRow(entry, world_size) {
  return entry.wholeRun && world_size > 1 ? ["Ranks", "all or none: ranks that train differently would wait for each other"] : null;
}
