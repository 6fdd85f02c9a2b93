// The receipt of a command on the rail: before, after, and 20 steps later. It does not go away by
// itself.

import { api } from "../api.js";
import { receiptMarkdown, receiptSentence, receiptsOf } from "../commands/effects.js";
import { commandEntry, commandTitle } from "../commands/catalogue.js";
import { foretold, laterFrom, LATER_STEPS, usedBeside } from "../commands/later.js";
import { copyFrom, el, fillWhenChanged } from "../dom.js";
import * as fields from "../fields.js";
import { known } from "../format.js";
import { footLine, MOST_RANKS, receiptTable, shownRanks } from "./receipt-table.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../commands/later.js").Later} Later */

const SAMPLE_WITHIN_NS = 2e9;
const AGAIN_MS = 1000;
/** A row that has not come by then was lost. */
const LOST_AFTER = 5 * LATER_STEPS;
const WANTED = [fields.RESERVED, fields.INACTIVE_SPLIT, fields.DEVICE_USED, fields.STEP_DURATION];

export class ReceiptPanel {
  /** @param {import("../data/run-session.js").RunSession} session */
  constructor(session) {
    this.session = session;
    /** @type {Set<string>} */
    this.dismissed = new Set();
    /** By command and rank; null while it is being fetched. @type {Map<string, Map<number, Later | null>>} */
    this.later = new Map();
    this.element = el("section", { class: "panel receipt", "aria-label": "Receipt", hidden: true });
  }

  /** Show the newest command that was meant to change something. */
  update() {
    const { commands, run } = this.session.store.state;
    const command = commands.findLast((one) => !one.dry_run && known(one.finished_ns) && (commandEntry(one.name)?.needsControl ?? true) && !this.dismissed.has(one.id));
    this.element.hidden = !command || !run;
    if (!command || !run) return;
    this.fetchLater(command, run);
    const limit = run.ranks?.find((rank) => rank.rank === receiptsOf(command)[0]?.rank)?.device_total_bytes ?? run.device_total_bytes;
    const later = this.laterOf(command);
    const troubled = command.state !== "done";
    this.element.classList.toggle("accented", !troubled);
    this.element.classList.toggle("amber", troubled);
    fillWhenChanged(this.element, `${command.id}/${command.state}/${[...later.keys()]}`, () => [
      this.header(command),
      el("div", { class: "body" }, el("h3", {}, receiptSentence(command, run.world_size)), receiptTable(command, limit, later), el("p", {}, footLine(command, foretold(commands, command)))),
    ]);
  }

  /**
   * What has come of the values twenty steps later.
   * @param {Command} command
   */
  laterOf(command) {
    return new Map([...(this.later.get(command.id) ?? [])].flatMap(([rank, later]) => (later ? [[rank, later]] : [])));
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
   * Of the ranks that are shown, as soon as each has gone so far.
   * @param {Command} command
   * @param {import("../messages.js").Run} run
   */
  fetchLater(command, run) {
    if (command.state !== "done") return;
    const asked = this.later.get(command.id) ?? new Map();
    this.later.set(command.id, asked);
    for (const { rank, receipt } of shownRanks(receiptsOf(command)).slice(0, MOST_RANKS)) {
      const at = receipt.step;
      const step = run.ranks?.find((one) => one.rank === rank)?.step ?? run.step;
      if (!known(at) || !known(step) || step < at + LATER_STEPS || asked.has(rank)) continue;
      asked.set(rank, null);
      const again = () => setTimeout(() => asked.delete(rank), AGAIN_MS);
      this.readLater(rank, at, step).then((later) => {
        if (later === null) again();
        else asked.set(rank, later);
        this.update();
      }, again);
    }
  }

  /**
   * Step rows do not carry what the device says: that comes from the sample before the step's end.
   * @param {number} rank
   * @param {number} at
   * @param {number} step that the rank is at
   * @returns {Promise<Later | null>} null while the row of that step is still on its way
   */
  async readLater(rank, at, step) {
    const payload = await api.steps(this.session.id, { fields: WANTED, rank, start: at - LATER_STEPS, end: at + LATER_STEPS });
    // Where that very row was lost, the last one before it counts after a while.
    if ((payload.step.at(-1) ?? 0) < at + LATER_STEPS && step < at + LOST_AFTER) return null;
    const later = laterFrom(payload, at);
    const end_ns = payload.time_ns.at(-1);
    if (known(later.used) || end_ns === undefined) return later;
    const samples = await api.series(this.session.id, { fields: [fields.DEVICE_USED, fields.RESERVED], rank, start_ns: end_ns - SAMPLE_WITHIN_NS, end_ns, points: 100 });
    const last = (/** @type {string} */ name) => samples.columns[name]?.max.findLast(known) ?? null;
    return { ...later, used: usedBeside(later.reserved, last(fields.DEVICE_USED), last(fields.RESERVED)) };
  }
}
