// The lives of ranks in words: which process took over from which, who is gone, and whether the
// launcher is about to start them again. Pure.

import { age, count, known, plural } from "./format.js";

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./messages.js").Rank} Rank */
/** @typedef {import("./messages.js").Life} Life */
/** @typedef {{rank: number, before: Life, after: Life}} Change one life of a rank after another */
/** @typedef {{kind: "restart" | "attach" | "handover", time_ns: number, step: number | null, changes: Change[]}} Turn changes of several ranks at once */
/** @typedef {{gone: Rank[], back: number, mayComeBack: boolean}} Stand */

/** Ranks of one job are started again one after the other, on all of its hosts. */
const TOGETHER_NS = 60e9;
/** So long after its last word a process may be on its way back. */
const COMING_BACK_NS = 90e9;
/** What happened longer ago is no news on top of a page. */
const RECENT_S = 1800;

/**
 * Every time a rank went on in another process or was attached to again, oldest first.
 * @param {Run} run
 * @returns {Turn[]}
 */
export function turnsOf(run) {
  const changes = (run.ranks ?? []).flatMap((rank) => {
    const lives = rank.lives ?? [];
    return lives.slice(1).map((after, i) => ({ rank: rank.rank, before: lives[i], after }));
  });
  changes.sort((a, b) => a.after.started_ns - b.after.started_ns);
  /** @type {Turn[]} */
  const turns = [];
  for (const change of changes) {
    const kind = /** @type {Turn["kind"]} */ (change.after.kind);
    const open = turns.findLast((turn) => turn.kind === kind && change.after.started_ns - turn.time_ns < TOGETHER_NS && !turn.changes.some((one) => one.rank === change.rank));
    if (open) {
      open.changes.push(change);
      open.step = highest(open.step, change.before.last_step);
    } else turns.push({ kind, time_ns: change.after.started_ns, step: change.before.last_step, changes: [change] });
  }
  return turns;
}

/**
 * @param {number | null} a
 * @param {number | null} b
 */
function highest(a, b) {
  return known(a) && known(b) ? Math.max(a, b) : (a ?? b);
}

const WORDS = { restart: "Restarted", attach: "Attached again", handover: "Handed over" };

/**
 * "Restarted: rank 2, pid 812 → 990, at step 412".
 * @param {Turn} turn
 * @param {number} world_size
 */
export function turnText(turn, world_size) {
  const [{ rank, before, after }] = turn.changes;
  const many = turn.changes.length;
  const who = many === 1 ? (world_size > 1 ? `rank ${rank}` : "") : many === world_size ? `all ${many} ranks` : `${many} of ${world_size} ranks`;
  const pids = many > 1 ? "" : before.pid === after.pid ? `pid ${after.pid}` : `pid ${before.pid} → ${after.pid}`;
  const host = many === 1 && before.host !== after.host ? `${before.host} → ${after.host}` : "";
  return `${WORDS[turn.kind]}: ${[who, pids, host, known(turn.step) && `at step ${count(turn.step)}`].filter(Boolean).join(", ")}`;
}

/**
 * How a life ended, as far as it is known.
 * @param {Life} life
 * @param {boolean} isOver another one took its place, or the rank is lost
 */
export function endOf(life, isOver) {
  if (life.end_reason === "detach") return "detached";
  const code = known(life.exit_code) ? `exit code ${life.exit_code}` : null;
  if (known(life.ended_ns)) return [code ?? life.end_reason ?? "ended", life.end_text].filter(Boolean).join(": ");
  return isOver ? "without a word: killed, or its host is gone" : "runs";
}

/** @param {Rank} rank */
export function lastLife(rank) {
  return rank.lives?.at(-1) ?? null;
}

/**
 * "lost at step 412", "exit code 1 at step 412: ValueError: …": the last words of a rank that is gone.
 * @param {Rank} rank
 */
export function lastWords(rank) {
  const at = known(rank.step) ? ` at step ${count(rank.step)}` : "";
  if (rank.state === "lost") return `lost${at}, without a word`;
  const how = known(rank.exit_code) ? `exit code ${rank.exit_code}` : rank.end_reason === "detach" ? "detached" : rank.end_reason === "exception" ? "exception" : "ended";
  return `${how}${at}${rank.end_text ? `: ${rank.end_text}` : ""}`;
}

/** A rank that did not leave on purpose. @param {Rank} rank */
export function isGone(rank) {
  return rank.state === "lost" || (rank.state === "ended" && rank.end_reason !== "detach" && ((known(rank.exit_code) && rank.exit_code !== 0) || rank.end_reason === "exception"));
}

/**
 * Ranks that are gone while others live, or that may be on their way back; null when there are none.
 * @param {Run} run
 * @param {number} now_ns
 * @returns {Stand | null}
 */
export function standOf(run, now_ns) {
  const ranks = run.ranks ?? [];
  const gone = ranks.filter(isGone);
  if (gone.length === 0) return null;
  const live = ranks.filter((rank) => rank.state === "live");
  const lastSeen_ns = Math.max(...gone.map((rank) => rank.last_seen_ns ?? 0));
  const recent = now_ns - lastSeen_ns < COMING_BACK_NS;
  // Back already: a newer process than the one that is gone.
  const back = live.filter((rank) => lastLife(rank)?.kind === "restart" && (lastLife(rank)?.started_ns ?? 0) > lastSeen_ns).length;
  const allowed = gone.some((rank) => (rank.max_restarts ?? 0) > (rank.restart_count ?? 0));
  const mayComeBack = recent && (back > 0 || allowed);
  return live.length || mayComeBack ? { gone, back, mayComeBack } : null;
}

/**
 * "restarted 2 times, last 4 min ago", of a rank or of the run; empty without restarts.
 * @param {number | undefined} restarts
 * @param {number | null | undefined} restarted_ns
 * @param {number} now_ns
 */
export function restartsText(restarts, restarted_ns, now_ns) {
  if (!restarts) return "";
  const ago = known(restarted_ns) ? `${age((now_ns - restarted_ns) / 1e9)} ago` : "";
  return restarts === 1 ? `restarted ${ago || "once"}` : `restarted ${plural(restarts, "time")}${ago ? `, last ${ago}` : ""}`;
}

/**
 * When a process last took this rank over.
 * @param {Rank} rank
 */
export function restartedAt(rank) {
  return rank.lives?.findLast((life) => life.kind === "restart")?.started_ns ?? null;
}

/**
 * The newest restart, while it is news.
 * @param {Run} run
 * @param {number} now_ns
 */
export function recentRestart(run, now_ns) {
  const turn = turnsOf(run).findLast((one) => one.kind === "restart");
  return turn && (now_ns - turn.time_ns) / 1e9 < RECENT_S ? turn : null;
}
