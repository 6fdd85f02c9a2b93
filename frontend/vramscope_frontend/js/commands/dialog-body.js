// What stands in the dialog of a command: the table of a dry run, costs, the text of an answer.

import { readTokens } from "../charts/theme.js";
import { copyFrom, el } from "../dom.js";
import { changeInUnit, count, exactBytes, inUnit, known, tableUnit } from "../format.js";
import { swatch } from "../views/breakdown.js";
import { dataTable } from "../views/parts.js";
import { wholeRunRow, whenRow } from "./command-words.js";
import { changesOf } from "./changes.js";
import { dryRunSentence, effectOf, isAboutMemory, plannedSentence, receiptsOf } from "./effects.js";
import { holderRows, holdersOf } from "./held.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../messages.js").Receipt} Receipt */

const MOST_RANKS = 8;

/**
 * What a dry run found: sentence, table, who holds what stays.
 * @param {Command} command
 * @param {number | null} activePeak of the last steps, on the one rank; null for several
 * @param {number | null} limit_bytes
 * @returns {{nodes: import("../dom.js").Child[], returned: number | null, says: string}}
 */
export function dryRunBody(command, activePeak, limit_bytes) {
  if (!isAboutMemory(command)) {
    const text = plannedSentence(command);
    return { nodes: [el("p", { class: "sentence" }, text.sentence), text.sub ? el("p", { class: "sub" }, text.sub) : null, changeTable(command)], returned: null, says: `${text.sentence} ${text.sub}` };
  }
  const text = dryRunSentence(command, activePeak);
  return { nodes: [el("p", { class: "sentence" }, text.sentence), el("p", { class: "sub" }, text.sub), dryRunTable(command, text.back, limit_bytes), heldList(command)], returned: text.returned, says: text.sentence };
}

/**
 * Values before and after, of what is no memory.
 * @param {Command} command
 * @param {string} [after] what the second column is called
 */
export function changeTable(command, after = "After") {
  const changes = changesOf(command);
  if (changes.length === 0) return null;
  return dataTable(["", ">Now", `>${after}`], changes.map((change) => [change.what, change.before, change.isChanged ? el("b", {}, change.after) : change.after]), "What changes");
}

/** @param {Command} command */
function heldList(command) {
  const holders = holdersOf(command);
  if (holders.length === 0) return null;
  return el("section", { "aria-label": "Who holds what stays" }, el("h3", {}, "What stays, and who holds it"), el("ul", { class: "held-by" }, ...holderRows(holders).map(([what, bytes, segments]) => el("li", {}, el("code", { title: what }, what), el("span", { class: "number" }, bytes), el("span", { class: "context" }, segments)))));
}

/**
 * Now, after, change, one step later.
 * @param {Command} command
 * @param {number | null} back what the next step takes back at least
 * @param {number | null} limit_bytes
 */
export function dryRunTable(command, back, limit_bytes) {
  const receipts = receiptsOf(command);
  if (receipts.length > 1) return perRankTable(receipts);
  const receipt = receipts[0]?.receipt;
  if (!receipt) return null;
  const now = effectOf(receipt.before, limit_bytes);
  const returned = receipt.returned_bytes ?? null;
  const less = (/** @type {number | null} */ value) => (known(value) && known(returned) ? value - returned : null);
  const more = (/** @type {number | null} */ value) => (known(value) && known(returned) ? value + returned : null);
  const active = now.active ?? now.allocated;
  const cached = known(now.reserved) && known(active) && known(now.stranded) ? Math.max(0, now.reserved - active - now.stranded) : null;
  const unit = tableUnit(now.reserved);
  const tokens = readTokens();
  const minus = known(returned) ? -returned : null;
  const row = (/** @type {any} */ name, /** @type {number | null} */ a, /** @type {number | null} */ b, /** @type {number | null} */ change, /** @type {number | null} */ later, /** @type {string} */ className = "") =>
    el("tr", { class: className }, el("td", {}, ...name), ...[inUnit(a, unit), inUnit(b, unit), changeInUnit(change, unit), inUnit(later, unit)].map((text, i) => el("td", { class: "number", title: exactBytes([a, b, change, later][i]) }, text)));
  const later = (/** @type {number | null} */ after, /** @type {1 | -1} */ sign) => (known(after) && known(back) ? after + sign * back : null);
  const rows = [];
  if (known(cached)) rows.push(row([swatch("cached", tokens), "Cached, returnable"], cached, less(cached), minus, later(less(cached), 1)));
  if (known(now.stranded)) rows.push(row([swatch("stranded", tokens), "Stranded"], now.stranded, now.stranded, 0, now.stranded));
  rows.push(row(["Reserved by PyTorch"], now.reserved, less(now.reserved), minus, later(less(now.reserved), 1), "rule"));
  if (known(now.free)) rows.push(row(["Free on the device"], now.free, more(now.free), returned, later(more(now.free), -1)));
  return el("table", { class: "data" }, el("thead", {}, el("tr", {}, ...[unit.name, "Now", "After", "Change", known(back) ? "One step later, at best" : "One step later"].map((head, i) => el("th", { scope: "col", class: i ? "number" : null }, head)))), el("tbody", {}, ...rows));
}

/** @param {{rank: number, receipt: Receipt}[]} receipts */
function perRankTable(receipts) {
  const sorted = [...receipts].sort((a, b) => (b.receipt.returned_bytes ?? 0) - (a.receipt.returned_bytes ?? 0));
  const unit = tableUnit(Math.max(0, ...receipts.map(({ receipt }) => effectOf(receipt.before, null).reserved ?? 0)));
  const rows = sorted.slice(0, MOST_RANKS).map(({ rank, receipt }) => {
    const now = effectOf(receipt.before, null);
    return [String(rank), receipt.state, inUnit(now.reserved, unit), inUnit(receipt.returned_bytes, unit)];
  });
  if (sorted.length > MOST_RANKS) rows.push([`${sorted.length - MOST_RANKS} more`, "", "", ""]);
  return dataTable(["Rank", "State", `>Reserved, ${unit.name}`, `>Would return, ${unit.name}`], rows, "Dry run by rank");
}

/**
 * What a command costs, when it happens and what it does not do.
 * @param {import("./catalogue.js").CommandEntry} entry
 * @param {number[]} ranks
 * @param {number} world_size
 */
export function costList(entry, ranks, world_size) {
  const whole = wholeRunRow(entry, world_size);
  const rows = [...entry.costs, whenRow(entry, ranks, world_size), ...(whole ? [whole] : [])];
  const limits = entry.not ? el("section", {}, el("h3", {}, "What it does not do"), el("p", {}, entry.not)) : null;
  return el("div", {}, el("section", {}, el("h3", {}, "What it costs"), el("dl", { class: "facts" }, ...rows.flatMap(([what, how]) => [el("dt", {}, what), el("dd", {}, how)]))), limits);
}

/**
 * The answer of a question: text as it is, counters as a table.
 * @param {string} title
 * @param {Receipt} receipt
 */
export function resultText(title, receipt) {
  const { result } = receipt;
  const text = typeof result === "string" ? result : result === null || result === undefined ? (receipt.message ?? "") : JSON.stringify(result, null, 2);
  const copy = el("button", { class: "button small", type: "button", click: () => void copyFrom(copy, text) }, "Copy");
  const counters = result !== null && typeof result === "object" && Object.values(result).every((value) => typeof value === "number");
  return el("section", {}, el("h3", {}, title, title ? " " : "", copy),
    counters ? dataTable(["Counter", ">Value"], Object.entries(result).map(([name, value]) => [el("code", {}, name), count(value)]), "Counters of the allocator") : el("pre", { class: "answer", tabindex: 0 }, text));
}
