// Events and commands as marks under the chart and as lines of a list. Pure.

import { clock, count, duration, known, sizeText } from "./format.js";
import { stretchText } from "./phases.js";
import { isGone, lastWords, turnsOf, turnText } from "./restarts.js";
import { commandEntry, commandTitle } from "./commands/catalogue.js";

/** @typedef {import("./messages.js").RunEvent} RunEvent */
/** @typedef {import("./messages.js").Command} Command */
/** @typedef {import("./charts/timeline.js").Mark} Mark */
/** @typedef {{time_ns: number, step: number | null, rank: number | null, kind: string, glyph: string, text: string}} Happening */

/** @type {Record<string, string>} */
const GLYPHS = { attach: "▸", register: "▸", detach: "◂", exit: "■", goodbye: "■", exception: "✕", oom: "✕", command: "↺", mark: "◆", capture: "◇", snapshot: "◆", history: "◆", phase: "▭", restart: "↻", handover: "↻", lost: "✕" };
const TURNS = { restart: true, attach: true, handover: true };
/** The agent's own notes, which other places of the page show. */
const NOTES = new Set(["outside", "processes", "tensors"]);
/** A job that evaluates often must not push everything else out of the list. */
const MOST_PHASES = 4;

/**
 * What became of the processes of a run: who took over, who is gone. Newest last.
 * @param {import("./messages.js").Run} run
 * @returns {Happening[]}
 */
export function turnings(run) {
  const turns = turnsOf(run).map((turn) => ({ time_ns: turn.time_ns, step: turn.step, rank: turn.changes.length === 1 ? turn.changes[0].rank : null, kind: turn.kind, glyph: GLYPHS[turn.kind], text: turnText(turn, run.world_size) }));
  const lost = (run.ranks ?? []).filter((rank) => isGone(rank)).map((rank) => ({ time_ns: rank.ended_ns ?? rank.last_seen_ns ?? rank.started_ns, step: rank.step, rank: rank.rank, kind: "lost", glyph: GLYPHS.lost, text: `Rank ${rank.rank}: ${lastWords(rank)}` }));
  return [...turns, ...lost].sort((a, b) => a.time_ns - b.time_ns);
}

/**
 * The newest phases that interrupted training.
 * @param {import("./phases.js").Stretch[]} stretches
 * @returns {Happening[]}
 */
export function phaseHappenings(stretches) {
  return stretches.filter((one) => one.kind !== "wait").slice(-MOST_PHASES).map((one) => {
    const text = stretchText(one);
    return { time_ns: one.start_ns, step: one.start_step, rank: one.rank, kind: "phase", glyph: GLYPHS.phase, text: text.charAt(0).toUpperCase() + text.slice(1) };
  });
}

/**
 * Everything that happened, newest last. A command and the event that the agent sent about it are
 * one happening.
 * @param {RunEvent[]} events
 * @param {Command[]} commands
 * @param {number} world_size
 * @param {Happening[]} [more] that is known from elsewhere
 * @returns {Happening[]}
 */
export function happenings(events, commands, world_size, more = []) {
  const shown = commands.flatMap((command) => commandHappening(command));
  const known_ids = new Set(commands.map((command) => command.id));
  for (const event of events) {
    if (event.kind === "phase" || isNote(event) || (event.kind === "attach" && more.some((one) => tellsOfAttach(one, event)))) continue;
    if (event.kind.startsWith("command") && known_ids.has(event.data?.id ?? event.data?.command_id)) continue;
    const where = world_size > 1 && known(event.rank) ? `Rank ${event.rank}: ` : "";
    shown.push({ time_ns: event.time_ns, step: event.step, rank: event.rank, kind: event.kind, glyph: GLYPHS[event.kind] ?? "•", text: where + (event.text || event.kind) });
  }
  return [...shown, ...more].sort((a, b) => a.time_ns - b.time_ns);
}

/** @param {RunEvent} event */
function isNote({ kind, data }) {
  return NOTES.has(kind) && data?.is_complete !== false;
}

/** What the agent says when it is there, some time after its process began. */
const ATTACHED_WITHIN_NS = 60e9;
const CLOCKS_DIFFER_NS = 2e9;

/**
 * Whether a happening tells already that a process was attached to.
 * @param {Happening} one
 * @param {RunEvent} event
 */
function tellsOfAttach(one, event) {
  const after_ns = event.time_ns - one.time_ns;
  return one.kind in TURNS && (one.rank === null || one.rank === event.rank) && after_ns > -CLOCKS_DIFFER_NS && after_ns < ATTACHED_WITHIN_NS;
}

/**
 * Only what changed something, or tried to.
 * @param {Command} command
 * @returns {Happening[]}
 */
function commandHappening(command) {
  if (command.dry_run || !known(command.finished_ns) || commandEntry(command.name)?.needsControl === false) return [];
  const receipts = Object.values(command.receipts);
  const first = receipts.find((receipt) => known(receipt.step)) ?? receipts[0];
  const returned = receipts.reduce((sum, receipt) => sum + (receipt.returned_bytes ?? 0), 0);
  const result = command.state !== "done" ? `: ${command.state}` : returned > 0 ? `: ${sizeText(returned)} returned` : "";
  const took = receipts.length === 1 && known(first?.took_s) ? `, ${duration(first.took_s)}` : "";
  const kind = receipts.some((receipt) => typeof receipt.result?.snapshot === "string") ? "snapshot" : "command";
  const by = command.issued_by ? `, by ${command.issued_by}` : "";
  return [{ time_ns: first?.time_ns ?? command.finished_ns, step: first?.step ?? null, rank: null, kind, glyph: GLYPHS[kind], text: `${commandTitle(command.name)}${result}${took}${by}` }];
}

/**
 * @param {Happening[]} all
 * @param {"step" | "time"} xKind
 * @param {number} origin_ns
 * @param {(t: number) => number} stepAtTime place on the axis of steps, for happenings that know no step
 * @param {(step: number, t: number) => number} [placeOf] of a step: its number may come more than once
 * @returns {Mark[]}
 */
export function marksOf(all, xKind, origin_ns, stepAtTime, placeOf = (step) => step) {
  return all.flatMap((one) => {
    const t = (one.time_ns - origin_ns) / 1e9;
    const x = xKind === "time" ? t : known(one.step) ? placeOf(one.step, t) : stepAtTime(t);
    if (!Number.isFinite(x)) return [];
    return { x, kind: one.kind, glyph: one.glyph, title: `${known(one.step) ? `step ${count(one.step)}, ` : ""}${clock(one.time_ns)}: ${one.text}` };
  });
}
