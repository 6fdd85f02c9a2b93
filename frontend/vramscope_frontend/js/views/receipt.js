// The receipt of a command on the rail: before, after, and 20 steps later. It does not go away by
// itself.

import { api } from "../api.js";
import { effectOf, receiptMarkdown, receiptSentence, receiptsOf } from "../commands/effects.js";
import { commandEntry, commandTitle } from "../commands/catalogue.js";
import { copyFrom, el, fillWhenChanged } from "../dom.js";
import * as fields from "../fields.js";
import { clock, count, duration, exactBytes, inUnit, known, ranksText, sizeText, tableUnit } from "../format.js";
import { quantile } from "../growth.js";
import { dataTable } from "./parts.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../messages.js").Receipt} Receipt */
/** @typedef {{reserved: number | null, stranded: number | null, used: number | null, before_s: number | null, after_s: number | null, later_s: number | null}} Later */

const LATER_STEPS = 20;
const SAMPLE_WITHIN_NS = 2e9;
const WANTED = [fields.RESERVED, fields.INACTIVE_SPLIT, fields.DEVICE_USED, fields.STEP_DURATION];

export class ReceiptPanel {
  /** @param {import("../data/run-session.js").RunSession} session */
  constructor(session) {
    this.session = session;
    /** @type {Set<string>} */
    this.dismissed = new Set();
    /** @type {Map<string, Later | null>} null while it is being fetched */
    this.later = new Map();
    this.element = el("section", { class: "panel receipt", "aria-label": "Receipt", hidden: true });
  }

  /** Show the newest command that was meant to change something. */
  update() {
    const { commands, run } = this.session.store.state;
    const command = commands.findLast((one) => !one.dry_run && known(one.finished_ns) && (commandEntry(one.name)?.needsControl ?? true) && !this.dismissed.has(one.id));
    this.element.hidden = !command || !run;
    if (!command || !run) return;
    this.fetchLater(command, run.step);
    const limit = run.ranks?.find((rank) => rank.rank === receiptsOf(command)[0]?.rank)?.device_total_bytes ?? run.device_total_bytes;
    const later = this.later.get(command.id) ?? null;
    const troubled = command.state !== "done";
    this.element.classList.toggle("accented", !troubled);
    this.element.classList.toggle("amber", troubled);
    fillWhenChanged(this.element, `${command.id}/${command.state}/${later ? "later" : ""}`, () => [
      this.header(command),
      el("div", { class: "body" }, el("h3", {}, receiptSentence(command, run.world_size)), receiptTable(command, limit, later), el("p", {}, footLine(command))),
    ]);
  }

  /** @param {Command} command */
  header(command) {
    const copy = el("button", { class: "button link", type: "button", click: () => void copyFrom(copy, receiptMarkdown(command, this.session.store.state.run?.world_size ?? 1)) }, "Copy");
    const dismiss = el("button", { class: "button link", type: "button", "aria-label": "Dismiss the receipt; it stays under Commands", title: "It stays under Commands", click: () => {
      this.dismissed.add(command.id);
      this.update();
    } }, "Dismiss");
    return el("header", {}, el("h2", {}, "Receipt"), el("span", { class: "context" }, `${commandTitle(command.name)} · ${command.state}`), el("div", { class: "controls" }, copy, dismiss));
  }

  /**
   * @param {Command} command
   * @param {number | null} step of the run
   */
  fetchLater(command, step) {
    const [first, ...others] = receiptsOf(command);
    const at = first?.receipt.step;
    if (command.state !== "done" || others.length > 0 || !first || !known(at) || !known(step) || step < at + LATER_STEPS || this.later.has(command.id)) return;
    this.later.set(command.id, null);
    this.readLater(first.rank, at).then(
      (later) => {
        this.later.set(command.id, later);
        this.update();
      },
      () => this.later.delete(command.id),
    );
  }

  /**
   * Step rows do not carry what the device says: that comes from the sample before the step's end.
   * @param {number} rank
   * @param {number} at
   */
  async readLater(rank, at) {
    const payload = await api.steps(this.session.id, { fields: WANTED, rank, start: at - LATER_STEPS, end: at + LATER_STEPS });
    const later = laterFrom(payload, at);
    const end_ns = payload.time_ns.at(-1);
    if (known(later.used) || end_ns === undefined) return later;
    const samples = await api.series(this.session.id, { fields: [fields.DEVICE_USED, fields.RESERVED], rank, start_ns: end_ns - SAMPLE_WITHIN_NS, end_ns, points: 100 });
    const last = (/** @type {string} */ name) => samples.columns[name]?.max.findLast(known) ?? null;
    return { ...later, used: usedBeside(later.reserved, last(fields.DEVICE_USED), last(fields.RESERVED)) };
  }
}

/**
 * Use of the device where the reserved bytes are known: what lies outside of PyTorch stays as it was.
 * @param {number | null} reserved
 * @param {number | null} sampled_used
 * @param {number | null} sampled_reserved
 */
export function usedBeside(reserved, sampled_used, sampled_reserved) {
  return known(reserved) && known(sampled_used) && known(sampled_reserved) ? reserved + Math.max(0, sampled_used - sampled_reserved) : null;
}

/**
 * @param {import("../messages.js").StepsPayload} payload
 * @param {number} at
 * @returns {Later}
 */
export function laterFrom(payload, at) {
  const between = (/** @type {number} */ from, /** @type {number} */ to) => {
    const values = payload.step.flatMap((step, i) => (step >= from && step <= to ? [payload.columns[fields.STEP_DURATION]?.[i] ?? NaN] : []));
    const median = quantile(values, 0.5);
    return known(median) ? median / 1e6 : null;
  };
  const index = payload.step.findLastIndex((step) => step <= at + LATER_STEPS);
  const value = (/** @type {string} */ name) => payload.columns[name]?.[index] ?? null;
  return { reserved: value(fields.RESERVED), stranded: value(fields.INACTIVE_SPLIT), used: value(fields.DEVICE_USED), before_s: between(at - LATER_STEPS, at - 1), after_s: between(at + 1, at + 1), later_s: between(at + 2, at + LATER_STEPS) };
}

/**
 * @param {Command} command
 * @param {number | null} limit
 * @param {Later | null} later
 * @param {boolean} [waits] whether the column "+20 steps" is still to come
 */
export function receiptTable(command, limit, later, waits = true) {
  const receipts = receiptsOf(command);
  if (receipts.length === 0) return null;
  if (receipts.length > 1) return receiptsByRank(receipts);
  const { rank, receipt } = receipts[0];
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
  if (later && known(later.before_s)) rows.push(["Step time, ms", ...[later.before_s, later.after_s, later.later_s].map((s) => (known(s) ? (s * 1000).toFixed(s < 0.01 ? 1 : 0) : "–"))]);
  const heads = [where, ">Before", ">After", ">+20 steps"];
  // What was not done has a before only.
  if (command.state !== "done") return dataTable(heads.slice(0, 2), rows.map((row) => row.slice(0, 2)), "Receipt");
  if (later || waits) return dataTable(heads, rows, "Receipt");
  return dataTable(heads.slice(0, 3), rows.map((row) => row.slice(0, 3)), "Receipt");
}

/** @param {{rank: number, receipt: Receipt}[]} receipts */
function receiptsByRank(receipts) {
  const rows = receipts.slice(0, 8).map(({ rank, receipt }) => [String(rank), receipt.state, known(receipt.step) ? count(receipt.step) : "–", sizeText(receipt.returned_bytes)]);
  if (receipts.length > 8) rows.push([`${receipts.length - 8} more`, "", "", ""]);
  return dataTable(["Rank", "State", ">Step", ">Returned"], rows, "Receipt by rank");
}

/** @param {Command} command */
export function footLine(command) {
  const took = receiptsOf(command).map(({ receipt }) => receipt.took_s).filter(known);
  const origin = { browser: "from the browser", cli: "from the command line", api: "by the API", server: "by itself", policy: "by a policy" }[command.origin] ?? command.origin;
  return [took.length ? `Took ${duration(Math.max(...took))}.` : "", `By ${command.issued_by || "not known"} ${origin}, ${clock(command.finished_ns ?? command.created_ns)}.`, `Command ${command.id.slice(0, 8)} in the audit log.`, receiptsOf(command).length ? "" : `Meant for ${ranksText(command.ranks, -1)}.`].filter(Boolean).join(" ");
}
