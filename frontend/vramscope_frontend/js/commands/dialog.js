// Acting: the dialog opens at once, a dry run fills it, one button names what it will do.

import { el, fill, setText } from "../dom.js";
import { ranksText } from "../format.js";
import { Segmented } from "../views/parts.js";
import { commandEntry } from "./catalogue.js";
import { costList, dryRunTable, resultText } from "./dialog-body.js";
import { actionLabel, dryRunSentence, receiptSentence, receiptsOf } from "./effects.js";
import { ParamForm } from "./param-form.js";
import { runCommand } from "./tracking.js";

/** @typedef {import("./catalogue.js").CommandEntry} CommandEntry */
/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../data/run-session.js").RunSession} RunSession */

/** A measurement is older than this when the job has moved on and the reader has thought for a while. */
const FRESH_STEPS = 5;
const FRESH_MS = 10_000;

/**
 * What the dialog has to know of the run while it is open.
 * @typedef {object} DialogContext
 * @property {RunSession} session
 * @property {number | null} rank the rank that is shown, null for all
 * @property {() => number | null} activePeak highest need of the last steps on the rank that is shown
 * @property {number | null} limit_bytes
 * @property {(snapshot: string) => string} [snapshotPath] address of a snapshot that was taken
 */

export class CommandDialog {
  /**
   * @param {string} name
   * @param {DialogContext} context
   */
  constructor(name, context) {
    const entry = commandEntry(name);
    if (!entry) throw new Error(`expected a command of the catalogue, got ${name}`);
    this.entry = /** @type {CommandEntry} */ (entry);
    this.context = context;
    const run = context.session.store.state.run;
    this.world_size = run?.world_size ?? 1;
    this.allRanks = (run?.ranks ?? []).filter((rank) => rank.state === "live").map((rank) => rank.rank);
    this.ranks = context.rank === null ? this.allRanks : [context.rank];
    this.aborting = new AbortController();
    /** @type {{step: number | null, at_ms: number, returned: number | null} | null} */
    this.measured = null;
    this.busy = false;
    this.form = new ParamForm(this.entry.params ?? []);
    this.title = el("h2", { id: "dialog-title" }, this.entry.title);
    this.state = el("span", { class: "context" });
    this.body = el("div", { class: "body" });
    this.cancel = el("button", { class: "button", type: "button", click: () => this.dialog.close() }, "Cancel");
    this.primary = el("button", { class: "button primary", type: "button", disabled: true, click: () => void this.confirm() }, this.entry.title);
    this.left = el("span", { class: "left" });
    this.dialog = el("dialog", { "aria-labelledby": "dialog-title", keydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event), close: () => this.onClose() },
      el("header", {}, this.title, this.state, el("div", { class: "controls" }, this.rankChoice(), el("kbd", {}, "Esc"))), this.body, el("footer", {}, this.left, this.cancel, this.primary));
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.cancel.focus();
    this.addGarbageChoice();
    this.prepare();
  }

  onClose() {
    this.aborting.abort();
    this.dialog.remove();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    // Shortcuts of the page rest while a dialog is open.
    event.stopPropagation();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!this.primary.disabled) void this.confirm();
    }
  }

  rankChoice() {
    if (this.world_size <= 1) return null;
    const one = this.context.rank ?? this.allRanks[0] ?? 0;
    const choice = new Segmented("Ranks", [{ value: "one", text: `Rank ${one}` }, { value: "all", text: `All ${this.allRanks.length}` }], (value) => {
      this.ranks = value === "one" ? [one] : this.allRanks;
      choice.choose(value);
      this.prepare();
    });
    choice.choose(this.context.rank === null ? "all" : "one");
    return choice.element;
  }

  addGarbageChoice() {
    if (!["empty_cache", "empty_cache+gc_collect"].includes(this.entry.name)) return;
    const box = el("input", { type: "checkbox" });
    box.checked = this.entry.name === "empty_cache+gc_collect";
    box.addEventListener("change", () => {
      this.entry = /** @type {CommandEntry} */ (commandEntry(box.checked ? "empty_cache+gc_collect" : "empty_cache"));
      setText(this.title, this.entry.title);
      this.prepare();
    });
    fill(this.left, el("label", { class: "check" }, box, "Collect garbage first"));
  }

  prepare() {
    this.measured = null;
    this.primary.disabled = true;
    if (!this.entry.needsControl) void this.ask();
    else if (this.entry.dryRun) void this.measure();
    else {
      setText(this.state, ranksText(this.ranks, this.world_size));
      fill(this.body, el("p", { class: "sentence" }, this.entry.summary), this.form.element, costList(this.entry, this.ranks, this.world_size));
      this.offer(null);
    }
  }

  /** @param {number | null} returned */
  offer(returned) {
    setText(this.primary, actionLabel(this.entry, returned, this.ranks, this.world_size));
    this.primary.disabled = returned === 0;
  }

  /** @param {string} [why] */
  async measure(why = "") {
    const where = ranksText(this.ranks, this.world_size);
    setText(this.state, `dry run · ${where}`);
    setText(this.primary, "Measuring…");
    this.primary.disabled = true;
    fill(this.body, el("p", { class: "sentence" }, `Measuring on ${where}…`), el("p", { class: "sub" }, why || "Nothing is changed. The answer comes at the end of the next step."));
    const command = await this.send(true);
    if (!command) return;
    if (command.state !== "done") {
      this.showProblem(receiptSentence(command, this.world_size));
      return;
    }
    const activePeak = this.ranks.length === 1 && this.ranks[0] === (this.context.rank ?? -1) ? this.context.activePeak() : null;
    const text = dryRunSentence(command, activePeak);
    const step = receiptsOf(command)[0]?.receipt.step ?? null;
    this.measured = { step, at_ms: performance.now(), returned: text.returned };
    setText(this.state, `dry run · ${where}${step === null ? "" : ` · measured at step ${step.toLocaleString("en-US")}`}, nothing was changed`);
    fill(this.body, el("p", { class: "sentence" }, text.sentence), el("p", { class: "sub" }, text.sub), dryRunTable(command, text.back, this.context.limit_bytes), costList(this.entry, this.ranks, this.world_size));
    this.offer(text.returned ?? null);
  }

  get isStale() {
    if (!this.measured) return false;
    const step = this.context.session.store.state.run?.step ?? null;
    const moved = step === null || this.measured.step === null ? Infinity : step - this.measured.step;
    return moved > FRESH_STEPS && performance.now() - this.measured.at_ms > FRESH_MS;
  }

  async confirm() {
    if (this.busy) return;
    if (this.entry.dryRun && this.isStale) {
      await this.measure("The job has moved on since the last measurement: measuring again before anything is changed.");
      return;
    }
    if (this.form.problem) {
      setText(this.state, this.form.problem);
      return;
    }
    this.primary.disabled = true;
    setText(this.primary, "Waiting for the end of a step…");
    const command = await this.send(false);
    if (!command) return;
    const snapshot = receiptsOf(command).map(({ receipt }) => receipt.result?.snapshot).find((id) => typeof id === "string");
    if (command.state === "done" && snapshot && this.context.snapshotPath) this.showSnapshot(command, this.context.snapshotPath(snapshot));
    else if (command.state === "done") this.dialog.close();
    else this.showProblem(receiptSentence(command, this.world_size));
  }

  /** A question needs no confirmation: it changes nothing. */
  async ask() {
    setText(this.state, ranksText(this.ranks, this.world_size));
    this.primary.hidden = true;
    setText(this.cancel, "Close");
    fill(this.body, el("p", { class: "sentence" }, `Asking ${ranksText(this.ranks, this.world_size)}…`), el("p", { class: "sub" }, this.entry.summary));
    const command = await this.send(false);
    if (!command) return;
    if (command.state !== "done") this.showProblem(receiptSentence(command, this.world_size));
    else fill(this.body, ...receiptsOf(command).map(({ rank, receipt }) => resultText(this.ranks.length > 1 ? `rank ${rank}` : "", receipt)));
  }

  /**
   * @param {boolean} dry_run
   * @returns {Promise<Command | null>} null when there is nothing left to do with it
   */
  async send(dry_run) {
    this.busy = true;
    try {
      const ranks = this.ranks.length === this.world_size ? "all" : this.ranks;
      return await runCommand(this.context.session, { name: this.entry.name, ranks, dry_run, params: this.form.values }, (command) => this.showProgress(command), this.aborting.signal);
    } catch (error) {
      if (!this.aborting.signal.aborted) this.showProblem(/** @type {Error} */ (error).message);
      return null;
    } finally {
      this.busy = false;
    }
  }

  /** @param {Command} command */
  showProgress(command) {
    const words = receiptsOf(command).map(({ receipt }) => (receipt.state === "running" ? receipt.message : "")).find(Boolean);
    if (words) setText(this.state, words);
    if (command.ranks.length <= 1 || command.dry_run) return;
    const through = receiptsOf(command).filter(({ receipt }) => receipt.state === "prepared" || receipt.state === "done").length;
    setText(this.primary, `Prepared ${through} of ${command.ranks.length}…`);
  }

  /**
   * A snapshot was taken: it is one click away.
   * @param {Command} command
   * @param {string} address
   */
  showSnapshot(command, address) {
    setText(this.state, ranksText(this.ranks, this.world_size));
    const open = el("a", { class: "button primary", href: address, click: () => this.dialog.close() }, "Open the snapshot");
    fill(this.body, el("p", { class: "sentence" }, receiptSentence(command, this.world_size)), el("p", { class: "sub" }, "It is in the list of snapshots and stays there when the run ends."));
    this.primary.replaceWith(open);
    setText(this.cancel, "Close");
    open.focus();
  }

  /** @param {string} text reason first */
  showProblem(text) {
    const again = () => (this.entry.needsControl ? this.prepare() : void this.ask());
    const retry = el("button", { class: "button", type: "button", click: again }, this.entry.dryRun ? "Measure again" : "Back");
    fill(this.body, el("p", { class: "problem", role: "alert" }, text), el("p", {}, retry));
    setText(this.primary, this.entry.title);
    this.primary.disabled = true;
  }
}
