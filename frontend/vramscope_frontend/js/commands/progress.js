// How far a command is over its ranks, as counts and words. Pure.

import { count, known, ranksText } from "../format.js";
import { commandEntry } from "./catalogue.js";
import { receiptsOf } from "./effects.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {{total: number, queued: number[], prepared: number[], running: number[], done: number[], failed: number[], share: number, text: string, waiting: string}} Progress */

/** Names at most so many ranks that are waited for. */
const NAMED = 6;

/**
 * @param {Command} command
 * @param {number} world_size
 * @returns {Progress}
 */
export function progressOf(command, world_size) {
  const states = new Map(receiptsOf(command).map(({ rank, receipt }) => [rank, receipt]));
  const of = (/** @type {string[]} */ ...wanted) => command.ranks.filter((rank) => wanted.includes(states.get(rank)?.state ?? "queued"));
  const parts = { queued: of("queued"), prepared: of("prepared"), running: of("running"), done: of("done"), failed: of("failed", "refused", "expired") };
  const total = command.ranks.length;
  const through = parts.running.length + parts.done.length + parts.failed.length;
  // Where all wait for each other, the answers are the way; elsewhere it is the running.
  const running = parts.prepared.length > 0 || commandEntry(command.name)?.sameStep ? 0.95 : 0.5;
  const share = total === 0 ? 0 : (parts.prepared.length * 0.9 + parts.running.length * running + parts.done.length + parts.failed.length) / total;
  const step = command.agreement?.at_step;
  return { ...parts, total, share, text: textOf(parts, total, through, step), waiting: waitingFor(parts, world_size) };
}

/**
 * @param {Pick<Progress, "queued" | "prepared" | "running" | "done" | "failed">} parts
 * @param {number} total
 * @param {number} through
 * @param {number | null | undefined} step that the ranks are asked for
 */
function textOf({ queued, prepared, running, done, failed }, total, through, step) {
  if (done.length + failed.length > 0) return `done on ${count(done.length)} of ${count(total)}${failed.length ? `, not on ${count(failed.length)}` : ""}`;
  if (prepared.length > 0 && queued.length > 0) return `prepared ${count(prepared.length + through)} of ${count(total)}`;
  if (prepared.length > 0 && through === 0) return `prepared on all ${count(total)}, for the end of ${known(step) ? `step ${count(step)}` : "one step"}`;
  if (running.length > 0) return `running on ${count(running.length)} of ${count(total)}`;
  return total > 1 ? `queued on ${count(total)}` : "queued";
}

/**
 * The ranks that all others wait for, while they are few.
 * @param {Pick<Progress, "queued" | "prepared" | "running" | "done">} parts
 * @param {number} world_size
 */
function waitingFor({ queued, prepared, running, done }, world_size) {
  const late = queued.length ? queued : done.length ? [...prepared, ...running] : [];
  if (late.length === 0 || late.length > NAMED || late.length === prepared.length + running.length + done.length + queued.length) return "";
  return `waiting for ${ranksText(late, world_size)}`;
}
