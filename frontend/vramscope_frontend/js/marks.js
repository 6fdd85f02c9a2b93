// Events and commands as marks under the chart and as lines of a list. Pure.

import { clock, count, duration, known, sizeText } from "./format.js";
import { commandEntry, commandTitle } from "./commands/catalogue.js";

/** @typedef {import("./messages.js").RunEvent} RunEvent */
/** @typedef {import("./messages.js").Command} Command */
/** @typedef {import("./charts/timeline.js").Mark} Mark */
/** @typedef {{time_ns: number, step: number | null, rank: number | null, kind: string, glyph: string, text: string}} Happening */

/** @type {Record<string, string>} */
const GLYPHS = { attach: "▸", register: "▸", detach: "◂", exit: "■", goodbye: "■", exception: "✕", oom: "✕", command: "↺", mark: "◆", capture: "◇", phase: "▭" };

/**
 * Everything that happened, newest last. A command and the event that the agent sent about it are
 * one happening.
 * @param {RunEvent[]} events
 * @param {Command[]} commands
 * @param {number} world_size
 * @returns {Happening[]}
 */
export function happenings(events, commands, world_size) {
  const shown = commands.flatMap((command) => commandHappening(command));
  const known_ids = new Set(commands.map((command) => command.id));
  for (const event of events) {
    if (event.kind.startsWith("command") && known_ids.has(event.data?.id ?? event.data?.command_id)) continue;
    const where = world_size > 1 && known(event.rank) ? `Rank ${event.rank}: ` : "";
    shown.push({ time_ns: event.time_ns, step: event.step, rank: event.rank, kind: event.kind, glyph: GLYPHS[event.kind] ?? "•", text: where + (event.text || event.kind) });
  }
  return shown.sort((a, b) => a.time_ns - b.time_ns);
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
  const by = command.issued_by ? `, by ${command.issued_by}` : "";
  return [{ time_ns: first?.time_ns ?? command.finished_ns, step: first?.step ?? null, rank: null, kind: "command", glyph: GLYPHS.command, text: `${commandTitle(command.name)}${result}${took}${by}` }];
}

/**
 * @param {Happening[]} all
 * @param {"step" | "time"} xKind
 * @param {number} origin_ns
 * @param {(t: number) => number} stepAtTime for happenings that know no step
 * @returns {Mark[]}
 */
export function marksOf(all, xKind, origin_ns, stepAtTime) {
  return all.flatMap((one) => {
    const t = (one.time_ns - origin_ns) / 1e9;
    const x = xKind === "time" ? t : (one.step ?? stepAtTime(t));
    if (!Number.isFinite(x)) return [];
    return { x, kind: one.kind, glyph: one.glyph, title: `${known(one.step) ? `step ${count(one.step)}, ` : ""}${clock(one.time_ns)}: ${one.text}` };
  });
}
