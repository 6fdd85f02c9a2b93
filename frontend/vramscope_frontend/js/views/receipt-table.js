// A receipt as a table: before, after, twenty steps later; by rank where there are several.

import { changeTable } from "../commands/dialog-body.js";
import { effectOf, isAboutMemory, receiptsOf, returnedBytes } from "../commands/effects.js";
import { stillReturned } from "../commands/later.js";
import { el } from "../dom.js";
import { clock, count, duration, exactBytes, inUnit, known, ranksText, sizeText, tableUnit } from "../format.js";
import { dataTable } from "./parts.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../messages.js").Receipt} Receipt */
/** @typedef {import("../commands/later.js").Later} Later */
/** @typedef {Map<number, Later>} LaterByRank */

export const MOST_RANKS = 8;

/**
 * Those of most effect first: of many ranks the others are one row.
 * @param {{rank: number, receipt: Receipt}[]} receipts
 */
export function shownRanks(receipts) {
  const worth = (/** @type {Receipt} */ receipt) => (receipt.state === "done" ? (receipt.returned_bytes ?? 0) : Infinity);
  return receipts.length <= MOST_RANKS ? receipts : [...receipts].sort((a, b) => (worth(a.receipt) < worth(b.receipt) ? 1 : worth(a.receipt) > worth(b.receipt) ? -1 : a.rank - b.rank));
}

/**
 * @param {Command} command
 * @param {number | null} limit
 * @param {LaterByRank | null} later
 * @param {boolean} [waits] whether the column "+20 steps" is still to come
 */
export function receiptTable(command, limit, later, waits = true) {
  const receipts = receiptsOf(command);
  if (receipts.length === 0) return null;
  const [{ rank, receipt }] = receipts;
  const changes = isAboutMemory(command) ? null : changeTable(command);
  if (changes) return el("div", {}, changes, timesTable(later?.get(rank) ?? null), receipts.length > 1 && command.state !== "done" ? receiptsByRank(command, receipts, null, false) : null);
  if (receipts.length > 1) return receiptsByRank(command, receipts, later, waits);
  return sizesTable(command, rank, receipt, limit, later?.get(rank) ?? null, waits);
}

/** @param {Later | null} later */
function timesTable(later) {
  if (!later || !known(later.before_s)) return null;
  return dataTable(["", ">Before", ">After", ">+20 steps"], [timesRow(later)], "Step time");
}

/** @param {Later} later */
function timesRow(later) {
  return ["Step time, ms", ...[later.before_s, later.after_s, later.later_s].map((s) => (known(s) ? (s * 1000).toFixed(s < 0.01 ? 1 : 0) : "–"))];
}

/**
 * @param {Command} command
 * @param {number} rank
 * @param {Receipt} receipt
 * @param {number | null} limit
 * @param {Later | null} later
 * @param {boolean} waits
 */
function sizesTable(command, rank, receipt, limit, later, waits) {
  const before = effectOf(receipt.before, limit);
  const after = effectOf(receipt.after, limit);
  if (!known(before.reserved) && !known(after.reserved)) return null;
  const unit = tableUnit(Math.max(before.reserved ?? 0, after.reserved ?? 0));
  const later_free = later && known(later.used) && known(limit) ? limit - later.used : null;
  const where = `Rank ${rank}${known(receipt.step) ? ` · end of step ${count(receipt.step)}` : ""}`;
  const sizes = (/** @type {string} */ name, /** @type {number | null} */ a, /** @type {number | null} */ b, /** @type {number | null | undefined} */ c) => [name, ...[a, b, c].map((bytes) => el("span", { title: exactBytes(bytes) }, inUnit(bytes, unit)))];
  const rows = [sizes(`Reserved, ${unit.name}`, before.reserved, after.reserved, later?.reserved)];
  if (known(before.stranded)) rows.push(sizes(`Stranded, ${unit.name}`, before.stranded, after.stranded, later?.stranded));
  if (known(before.free)) rows.push(sizes(`Free on device, ${unit.name}`, before.free, after.free, later_free));
  if (later && known(later.before_s)) rows.push(timesRow(later));
  const heads = [where, ">Before", ">After", ">+20 steps"];
  // What was not done has a before only.
  if (command.state !== "done") return dataTable(heads.slice(0, 2), rows.map((row) => row.slice(0, 2)), "Receipt");
  if (later || waits) return dataTable(heads, rows, "Receipt");
  return dataTable(heads.slice(0, 3), rows.map((row) => row.slice(0, 3)), "Receipt");
}

/**
 * @param {Command} command
 * @param {{rank: number, receipt: Receipt}[]} receipts
 * @param {LaterByRank | null} later
 * @param {boolean} waits
 */
function receiptsByRank(command, receipts, later, waits) {
  const isMemory = isAboutMemory(command) && known(returnedBytes(command));
  const largest = Math.max(0, ...receipts.map(({ receipt }) => receipt.returned_bytes ?? 0));
  const unit = tableUnit(largest);
  const shown = shownRanks(receipts).slice(0, MOST_RANKS);
  const heads = ["Rank", "State", ">Step", ...(isMemory ? [`>Returned, ${unit.name}`] : []), ...(isMemory && (waits || later?.size) ? [">+20 steps"] : [])];
  const rows = shown.map(({ rank, receipt }) => [String(rank), receipt.state, known(receipt.step) ? count(receipt.step) : "–", ...(isMemory ? [el("span", { title: exactBytes(receipt.returned_bytes) }, inUnit(receipt.returned_bytes, unit)), el("span", { title: "of it still returned 20 steps later" }, inUnit(stillReturned(receipt, later?.get(rank)), unit))] : [])].slice(0, heads.length));
  if (receipts.length > shown.length) rows.push([`${receipts.length - shown.length} more`, ...heads.slice(1).map(() => "")]);
  return dataTable(heads, rows, "Receipt by rank");
}

/**
 * @param {Command} command
 * @param {number | null} [expected] bytes that its dry run had foretold
 */
export function footLine(command, expected = null) {
  const took = receiptsOf(command).map(({ receipt }) => receipt.took_s).filter(known);
  const origin = { browser: "from the browser", cli: "from the command line", api: "by the API", server: "by the server itself", policy: "by a policy" }[command.origin] ?? command.origin;
  const returned = returnedBytes(command);
  const told = known(expected) && known(returned) && command.state === "done" ? `Predicted ${sizeText(expected)}, got ${sizeText(returned)}.` : "";
  return [took.length ? `Took ${duration(Math.max(...took))}.` : "", told, `By ${command.issued_by || "not known"} ${origin}, ${clock(command.finished_ns ?? command.created_ns)}.`, command.note ?? "", `Command ${command.id.slice(0, 8)} in the audit log.`, receiptsOf(command).length ? "" : `Meant for ${ranksText(command.ranks, -1)}.`].filter(Boolean).join(" ");
}
