// Whether a run was paused from here, since which step and until when. Pure.

import { known } from "../format.js";
import { receiptsOf } from "./effects.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../messages.js").Run} Run */
/** @typedef {{command: Command, step: number | null, until_ns: number | null, by: string}} Pause */

/** What a last word may take on its way. */
const LATE_NS = 5e9;

/**
 * A run stands still while its newest pause runs: it began, and neither its time nor a "resume" has ended it.
 * @param {Command[]} commands
 * @param {Run | null} run
 * @param {number} now_ns
 * @returns {Pause | null}
 */
export function pauseOf(commands, run, now_ns) {
  if (run?.state !== "live") return null;
  const command = commands.findLast((one) => one.name === "pause" && !one.dry_run);
  if (!command) return null;
  const receipts = receiptsOf(command).map(({ receipt }) => receipt);
  const began = receipts.filter((receipt) => receipt.state === "running" || receipt.state === "done");
  if (began.length === 0) return null;
  const began_ns = Math.min(...began.map((receipt) => receipt.time_ns).filter(known));
  const max_s = known(command.params.max_s) ? command.params.max_s : 60;
  const until_ns = Number.isFinite(began_ns) ? began_ns + max_s * 1e9 : null;
  const pause = { command, step: began.map((receipt) => receipt.step).find(known) ?? null, until_ns, by: command.issued_by };
  const isOver = commands.some((one) => one.name === "resume" && !one.dry_run && one.state === "done" && one.created_ns > command.created_ns);
  if (isOver || (known(until_ns) && now_ns > until_ns + LATE_NS)) return null;
  // A receipt that is final says that training goes on again: the agent tells it at the end of the pause.
  return receipts.some((receipt) => receipt.state === "running") ? pause : null;
}
