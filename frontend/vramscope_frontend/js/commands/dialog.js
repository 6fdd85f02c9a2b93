// Acting: the dialog opens at once, a dry run fills it, one button names what it will do.

import { el, fill, setText } from "../dom.js";
import { capital } from "../findings/card-words.js";
import { count, ranksText } from "../format.js";
import { Segmented } from "../views/parts.js";
import { commandEntry } from "./catalogue.js";
import { Consent } from "./consent.js";
import { costList, dryRunBody, resultText } from "./dialog-body.js";
import { DialogFrame } from "./dialog-frame.js";
import { actionLabel, receiptSentence, receiptsOf } from "./effects.js";
import { ParamForm } from "./param-form.js";
import { ProgressBar } from "./progress-bar.js";
import { runCommand } from "./tracking.js";

/** @typedef {import("./catalogue.js").CommandEntry} CommandEntry */
/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../data/run-session.js").RunSession} RunSession */
/** @typedef {{step: number | null, label: string, values: string, returned: number | null, says: string}} Measured */

/** A measurement that is older is taken again before anything is changed. */
const FRESH_STEPS = 5;
const FREES = ["empty_cache", "empty_cache+gc_collect"];

/**
 * What the dialog has to know of the run while it is open.
 * @typedef {object} DialogContext
 * @property {RunSession} session
 * @property {number | null} rank the rank that is shown, null for all
 * @property {() => number | null} activePeak highest need of the last steps on the rank that is shown
 * @property {number | null} limit_bytes
 * @property {(snapshot: string) => string} [snapshotPath] address of a snapshot that was taken
 * @property {Record<string, any>} [params] values of the form at first
 * @property {number[]} [ranks] the only ranks that know the command, of those that are live
 */

export class CommandDialog {
  /**
   * @param {CommandEntry} entry
   * @param {DialogContext} context
   */
  constructor(entry, context) {
    this.entry = entry;
    this.context = context;
    const run = context.session.store.state.run;
    this.world_size = run?.world_size ?? 1;
    const live = (run?.ranks ?? []).filter((rank) => rank.state === "live").map((rank) => rank.rank);
    this.allRanks = context.ranks ? live.filter((rank) => context.ranks?.includes(rank)) : live;
    this.ranks = context.rank === null || entry.wholeRun ? this.allRanks : [context.rank];
    this.aborting = new AbortController();
    /** @type {Measured | null} */
    this.measured = null;
    this.busy = false;
    this.form = new ParamForm(entry.params ?? [], context.params, () => this.formChanged());
    this.consent = new Consent(entry.changesTraining ? (entry.consent ?? "") : null, () => this.offer());
    this.progress = new ProgressBar();
    this.frame = new DialogFrame(entry.title, { onPrimary: () => void this.confirm(), onClose: () => this.onClose() });
    this.lead = el("p", {});
    this.result = el("div", { class: "dry-run" });
  }

  open() {
    fill(this.frame.choice, this.rankChoice());
    this.frame.open();
    this.showLeft();
    this.prepare();
  }

  onClose() {
    this.aborting.abort();
    this.frame.dialog.remove();
  }

  rankChoice() {
    if (this.world_size <= 1 || this.entry.wholeRun) return null;
    const one = this.context.rank ?? this.allRanks[0] ?? 0;
    const choice = new Segmented("Ranks", [{ value: "one", text: `Rank ${one}` }, { value: "all", text: `All ${this.allRanks.length}` }], (value) => {
      if (this.busy) return;
      this.ranks = value === "one" ? [one] : this.allRanks;
      choice.choose(value);
      this.prepare();
    });
    choice.choose(this.context.rank === null ? "all" : "one");
    return choice.element;
  }

  /** What stands left of the buttons: a choice, or how far it is. */
  showLeft() {
    if (!FREES.includes(this.entry.name)) {
      fill(this.frame.left);
      return;
    }
    const box = el("input", { type: "checkbox" });
    box.checked = this.entry.name === "empty_cache+gc_collect";
    box.addEventListener("change", () => {
      this.entry = /** @type {CommandEntry} */ (commandEntry(box.checked ? "empty_cache+gc_collect" : "empty_cache"));
      setText(this.frame.title, this.entry.title);
      this.prepare();
    });
    fill(this.frame.left, el("label", { class: "check" }, box, "Collect garbage first"));
  }

  prepare() {
    this.measured = null;
    this.consent.reset();
    const asks = !this.entry.needsControl && this.form.element === null;
    if (asks) void this.ask();
    else if (this.entry.dryRun && this.form.element === null) void this.measure();
    else this.showForm();
  }

  showForm() {
    const { entry } = this;
    setText(this.frame.state, ranksText(this.ranks, this.world_size));
    fill(this.result);
    setText(this.lead, entry.summary);
    this.lead.className = "sentence";
    if (this.consent.element) this.consent.element.hidden = entry.dryRun;
    this.frame.show(this.lead, this.form.element, this.result, this.costs(), this.consent.element);
    this.offer();
    if (this.form.element) this.form.focus();
  }

  costs() {
    return this.entry.needsControl || this.entry.costs.length ? costList(this.entry, this.ranks, this.world_size) : null;
  }

  /** Whether a dry run with these values has to come first. */
  get wantsDryRun() {
    return this.entry.dryRun && (this.measured === null || this.measured.values !== JSON.stringify(this.form.values));
  }

  formChanged() {
    setText(this.frame.state, ranksText(this.ranks, this.world_size));
    if (this.busy) return;
    this.result.classList.toggle("outdated", this.wantsDryRun && this.measured !== null);
    this.offer();
  }

  /** The button as the fields and the box stand. */
  offer() {
    if (this.busy) return;
    const { problem } = this.form;
    if (this.wantsDryRun) {
      this.frame.offer("Dry run", problem);
      return;
    }
    const nothing = FREES.includes(this.entry.name) && this.measured?.returned === 0 ? "There is nothing to return." : null;
    this.frame.offer(this.label, problem ?? nothing ?? this.consent.missing, this.entry.dangerous ?? false);
  }

  get label() {
    return actionLabel(this.entry, this.measured?.returned ?? null, this.ranks, this.world_size, this.form.values);
  }

  /** @param {string} [why] */
  async measure(why = "") {
    const { frame } = this;
    const where = ranksText(this.ranks, this.world_size);
    setText(frame.state, `dry run · ${where}`);
    frame.wait("Measuring…");
    const words = [el("p", { class: "sentence" }, `Measuring on ${where}…`), el("p", { class: "sub" }, why || "Nothing is changed. The answer comes at the end of the next step.")];
    this.lead.className = "sub";
    if (this.form.element) fill(this.result, ...words);
    else frame.show(...words);
    const values = JSON.stringify(this.form.values);
    const command = await this.send(true);
    if (!command) return null;
    if (command.state !== "done") {
      this.showProblem(receiptSentence(command, this.world_size));
      return null;
    }
    this.showMeasured(command, values);
    return this.measured;
  }

  /**
   * @param {Command} command
   * @param {string} values that it was measured with
   */
  showMeasured(command, values) {
    const { frame, context } = this;
    const activePeak = this.ranks.length === 1 && this.ranks[0] === (context.rank ?? -1) ? context.activePeak() : null;
    const { nodes, returned, says } = dryRunBody(command, activePeak, context.limit_bytes);
    const step = receiptsOf(command)[0]?.receipt.step ?? null;
    this.measured = { step, label: "", values, returned, says };
    this.measured.label = this.label;
    setText(frame.state, `dry run · ${ranksText(this.ranks, this.world_size)}${step === null ? "" : ` · measured at step ${count(step)}`}, nothing was changed`);
    this.result.classList.remove("outdated");
    fill(this.result, ...nodes);
    // What stands around a form stays as it is: the field that is being filled keeps the focus.
    if (this.consent.element) this.consent.element.hidden = false;
    if (!this.form.element) frame.show(this.result, this.costs(), this.consent.element);
    this.offer();
  }

  get isStale() {
    const step = this.context.session.store.state.run?.step ?? null;
    return this.measured !== null && (step === null || this.measured.step === null || step - this.measured.step > FRESH_STEPS);
  }

  async confirm() {
    if (this.busy) return;
    if (this.form.problem) {
      setText(this.frame.state, this.form.problem);
      return;
    }
    if (this.wantsDryRun) {
      await this.measure();
      return;
    }
    if (!this.consent.isGiven) return;
    if (!this.entry.needsControl) {
      await this.ask();
      return;
    }
    if (this.entry.dryRun && this.isStale && !(await this.measuresTheSame())) return;
    this.frame.wait("Sending…");
    const command = await this.send(false);
    if (!command) return;
    const snapshot = receiptsOf(command).map(({ receipt }) => receipt.result?.snapshot).find((id) => typeof id === "string");
    if (command.state === "done" && snapshot && this.context.snapshotPath) this.showSnapshot(command, this.context.snapshotPath(snapshot));
    else if (command.state === "done") this.frame.dialog.close();
    else this.showProblem(receiptSentence(command, this.world_size));
  }

  /** Measure again; the button was pressed for what it said, so it is only done if it still says so. */
  async measuresTheSame() {
    const before = this.measured;
    const given = this.consent.box.checked;
    const now = await this.measure("The job has moved on since the last measurement: measuring again before anything is changed.");
    this.consent.box.checked = given;
    if (!now || !before) return false;
    if (now.label === before.label && (FREES.includes(this.entry.name) ? (now.returned ?? 0) > 0 : now.says === before.says)) return true;
    setText(this.frame.state, "measured again: it is different now. Nothing was changed; look before you confirm");
    this.offer();
    return false;
  }

  /** A question needs no confirmation: it changes nothing. */
  async ask() {
    const { frame } = this;
    const where = ranksText(this.ranks, this.world_size);
    setText(frame.state, where);
    frame.primary.hidden = true;
    setText(frame.cancel, "Close");
    frame.show(el("p", { class: "sentence" }, `Asking ${where}…`), el("p", { class: "sub" }, this.entry.summary));
    const command = await this.send(false);
    if (!command) return;
    if (command.state !== "done") this.showProblem(receiptSentence(command, this.world_size));
    else frame.show(...receiptsOf(command).map(({ rank, receipt }) => resultText(this.ranks.length > 1 ? `rank ${rank}` : "", receipt)));
  }

  /**
   * @param {boolean} dry_run
   * @returns {Promise<Command | null>} null when there is nothing left to do with it
   */
  async send(dry_run) {
    this.busy = true;
    try {
      const ranks = this.entry.wholeRun || this.ranks.length === this.world_size ? "all" : this.ranks;
      return await runCommand(this.context.session, { name: this.entry.name, ranks, dry_run, params: this.form.values }, (command) => this.showProgress(command), this.aborting.signal);
    } catch (error) {
      if (!this.aborting.signal.aborted) this.showProblem(/** @type {Error} */ (error).message);
      return null;
    } finally {
      this.busy = false;
      if (!this.aborting.signal.aborted) this.showLeft();
    }
  }

  /** @param {Command} command */
  showProgress(command) {
    const progress = this.progress.update(command, this.world_size);
    const words = receiptsOf(command).map(({ receipt }) => (receipt.state === "running" ? receipt.message : "")).find(Boolean);
    if (words) setText(this.frame.state, words);
    if (command.dry_run || !this.entry.needsControl) return;
    if (command.ranks.length > 1) {
      if (!this.progress.element.isConnected) fill(this.frame.left, this.progress.element);
      this.frame.wait(`${capital(progress.text)}…`);
    } else this.frame.wait(command.state === "running" ? "Running…" : "Waiting for the end of a step…");
  }

  /**
   * A snapshot was taken: it is one click away.
   * @param {Command} command
   * @param {string} address
   */
  showSnapshot(command, address) {
    const { frame } = this;
    setText(frame.state, ranksText(this.ranks, this.world_size));
    const open = el("a", { class: "button primary", href: address, click: () => frame.dialog.close() }, "Open the snapshot");
    frame.show(el("p", { class: "sentence" }, receiptSentence(command, this.world_size)), el("p", { class: "sub" }, "It is in the list of snapshots and stays there when the run ends."));
    frame.primary.replaceWith(open);
    setText(frame.cancel, "Close");
    open.focus();
  }

  /** @param {string} text reason first */
  showProblem(text) {
    const again = () => (this.entry.needsControl || this.form.element ? this.prepare() : void this.ask());
    const retry = el("button", { class: "button", type: "button", click: again }, this.entry.dryRun && !this.form.element ? "Measure again" : "Back");
    this.frame.show(el("p", { class: "problem", role: "alert" }, text), el("p", {}, retry));
    this.frame.offer(this.entry.title, "It did not happen: the reason stands above.");
    this.measured = null;
  }
}
