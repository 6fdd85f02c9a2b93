// Which processes the ranks of a run were, and how each of them ended.

import { el } from "../dom.js";
import { clockWithUtc, count, day, known, plural } from "../format.js";
import { endOf, restartedAt, restartsText } from "../restarts.js";
import { dataTable } from "./parts.js";

/** @typedef {import("../messages.js").Run} Run */
/** @typedef {import("../messages.js").Rank} Rank */

const MOST_ROWS = 200;
const BEGAN = { start: "started", restart: "restarted", attach: "attached again", handover: "handed over" };

/**
 * "Restarted 2 times, last 4 min ago; rank 1 was attached again."
 * @param {Run} run
 * @param {number} now_ns
 */
export function restartsLine(run, now_ns) {
  const ranks = run.ranks ?? [];
  const restarts = Math.max(0, ...ranks.map((rank) => rank.restarts));
  const last = Math.max(...ranks.map((rank) => restartedAt(rank) ?? -Infinity));
  const reattached = ranks.filter((rank) => rank.reattaches).length;
  const text = restartsText(restarts, Number.isFinite(last) ? last : null, now_ns);
  const partly = restarts > 0 && ranks.some((rank) => rank.restarts !== restarts) ? ", not all ranks as often" : "";
  const again = reattached ? `${plural(reattached, "rank was", "ranks were")} attached to again` : "";
  const words = [text && text + partly, again].filter(Boolean).join("; ");
  return words ? `${words.charAt(0).toUpperCase()}${words.slice(1)}.` : "None: every rank is the process that it began as.";
}

/**
 * Newest first within each rank. Only ranks with more than one life, where there are such.
 * @param {Run} run
 */
export function livesTable(run) {
  const ranks = run.ranks ?? [];
  const several = ranks.filter((rank) => (rank.lives?.length ?? 0) > 1);
  const now_ns = Math.max(...ranks.map((rank) => rank.last_seen_ns ?? 0));
  const rows = (several.length ? several : ranks).flatMap((rank) => rowsOf(rank, now_ns));
  const table = dataTable(["Rank", "Began", "Process", ">Steps", "End"], rows.slice(0, MOST_ROWS), "Lives of the ranks");
  table.classList.add("lives");
  return table;
}

/**
 * @param {Rank} rank
 * @param {number} now_ns
 */
function rowsOf(rank, now_ns) {
  const lives = rank.lives ?? [];
  return lives.map((life, i) => {
    const isOver = i < lives.length - 1 || rank.state === "lost";
    const steps = known(life.first_step) && known(life.last_step) ? `${count(life.first_step)} to ${count(life.last_step)}` : "none";
    return [i === lives.length - 1 ? String(rank.rank) : "", el("span", { title: clockWithUtc(life.started_ns) }, `${BEGAN[life.kind]} ${day(life.started_ns, now_ns)}`), `${life.host}, pid ${life.pid}`, steps, endOf(life, isOver)];
  }).reverse();
}
