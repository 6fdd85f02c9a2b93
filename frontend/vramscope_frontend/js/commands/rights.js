// Whether a run may be acted on now, and if not: which right is missing and how to get it. Pure.

import { ranksText } from "../format.js";
import { commandTitle } from "./catalogue.js";

/** @typedef {import("../messages.js").Run} Run */
/** @typedef {import("../messages.js").Rank} Rank */
/** @typedef {import("../socket.js").Link} Link */

/** Begins what is said where the reader or the agent lacks the right to act at all. */
const LOOK = "You may look but not act";

/** @param {Run} run */
export function liveRanks(run) {
  return (run.ranks ?? []).filter((rank) => rank.state === "live");
}

/**
 * Why this run cannot be acted on now; null when it can.
 * @param {object} seen
 * @param {Run | null} seen.run
 * @param {Link} seen.link
 * @param {string[]} seen.scopes
 * @param {string} seen.command
 * @param {boolean} seen.needsControl
 * @param {boolean} [seen.wholeRun] on all ranks or none
 * @returns {string | null}
 */
export function reasonNotToAct({ run, link, scopes, command, needsControl, wholeRun = false }) {
  if (link.state !== "open") return "This page is not connected to its server.";
  if (!run) return "The run is not loaded yet.";
  if (run.state === "ended") return "The run has ended.";
  if (run.state === "lost") return "Contact with the run is lost.";
  if (needsControl && !scopes.includes("control")) return `${LOOK}: your token has no control right. Ask whoever runs the server for one: vramscope token create --scope view,control.`;
  const ranks = liveRanks(run);
  if (ranks.length === 0) return "No rank of the run is live.";
  if (needsControl && ranks.every((rank) => rank.allow === "observe")) return `${LOOK}: the agent was started with VRAMSCOPE_ALLOW=observe. Start the job with --allow control to change that.`;
  return reasonOfAgents(run, ranks, command, needsControl, wholeRun);
}

/**
 * What the agents themselves do not do: theirs is the last word.
 * @param {Run} run
 * @param {Rank[]} ranks
 * @param {string} command
 * @param {boolean} needsControl
 * @param {boolean} wholeRun
 */
function reasonOfAgents(run, ranks, command, needsControl, wholeRun) {
  const able = ranks.filter((rank) => rank.commands.includes(command) && !(needsControl && rank.allow === "observe"));
  const lacking = ranks.filter((rank) => !able.includes(rank));
  if (able.length === 0) return `The agent of this run does not accept "${commandTitle(command)}": its list of allowed commands (VRAMSCOPE_ALLOW) leaves it out, or its version does not know it.`;
  if (wholeRun && lacking.length > 0) return `Needs all ranks: the agent of ${ranksText(lacking.map((rank) => rank.rank), run.world_size)} does not accept it.`;
  if (wholeRun && ranks.length < run.world_size) return `Needs all ranks: ${run.world_size - ranks.length} of ${run.world_size} are not live.`;
  return null;
}

/**
 * Why nothing of a run can be acted on by this reader, where the reader or the agents lack the right; else null.
 * @param {Run} run that is live
 * @param {string[]} scopes
 */
export function viewOnlyReason(run, scopes) {
  const reason = reasonNotToAct({ run, link: { state: "open", attempt: 0, retry_at_ms: 0, reason: "" }, scopes, command: "", needsControl: true });
  return reason?.startsWith(LOOK) ? reason : null;
}
