// Probing steps: an ordinary dry run first, then what it costs, and a click that consents.

import { api } from "../api.js";
import { receiptSentence } from "../commands/effects.js";
import { runCommand } from "../commands/tracking.js";
import { el, fill, setText } from "../dom.js";
import { count } from "../format.js";

/** @typedef {import("../batch-fit.js").ProbeOffer} ProbeOffer */
/** @typedef {import("../data/run-session.js").RunSession} RunSession */

export class ProbeDialog {
  /**
   * @param {RunSession} session
   * @param {ProbeOffer} probe
   * @param {() => void} onBegun
   */
  constructor(session, probe, onBegun) {
    this.session = session;
    this.probe = probe;
    this.onBegun = onBegun;
    this.opener = document.activeElement;
    this.aborting = new AbortController();
    this.body = el("div", { class: "body" });
    this.cancel = el("button", { class: "button", type: "button", click: () => this.dialog.close() }, "Cancel");
    this.primary = el("button", { class: "button primary", type: "button", disabled: true, click: () => void this.begin() }, this.label);
    this.dialog = el("dialog", { "aria-labelledby": "probe-title", close: () => this.onClose(), keydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event) },
      el("header", {}, el("h2", { id: "probe-title" }, "Probe another batch size"), el("div", { class: "controls" }, el("kbd", {}, "Esc"))), this.body, el("footer", {}, el("span", { class: "left" }), this.cancel, this.primary));
  }

  get label() {
    return `Probe ${this.probe.steps} steps with ${count(this.probe.batch_size)} samples`;
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.cancel.focus();
    void this.check();
  }

  onClose() {
    this.aborting.abort();
    this.dialog.remove();
    if (this.opener instanceof HTMLElement && this.opener.isConnected) this.opener.focus();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    event.stopPropagation();
    // As in every dialog that acts: Enter alone does not press the button.
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !this.primary.disabled) void this.begin();
  }

  get world_size() {
    return this.session.run?.world_size ?? 1;
  }

  async check() {
    fill(this.body, el("p", { class: "sentence" }, `Asking what ${count(this.probe.batch_size)} samples would mean…`), el("p", { class: "sub" }, "A dry run: nothing is changed."));
    try {
      const command = await runCommand(this.session, { name: "set_batch_size", ranks: "all", dry_run: true, params: this.probe.params }, () => {}, this.aborting.signal);
      if (command.state !== "done") this.showProblem(receiptSentence(command, this.world_size));
      else this.offer(receiptSentence(command, this.world_size));
    } catch (error) {
      if (!this.aborting.signal.aborted) this.showProblem(/** @type {Error} */ (error).message);
    }
  }

  /** @param {string} said */
  offer(said) {
    const { batch_size, back, steps, costs } = this.probe;
    fill(this.body,
      el("p", { class: "sentence" }, `Trains ${steps} steps with ${count(batch_size)} samples, then goes back to ${count(back)} by itself.`),
      el("p", { class: "sub" }, said),
      el("dl", { class: "batch-facts" }, ...costs.flatMap(([what, much]) => [el("dt", {}, what), el("dd", {}, much)])));
    this.primary.disabled = false;
  }

  async begin() {
    this.primary.disabled = true;
    setText(this.primary, "Beginning…");
    try {
      await api.probe(this.session.id, this.probe.batch_size);
      this.onBegun();
      this.dialog.close();
    } catch (error) {
      setText(this.primary, this.label);
      this.showProblem(/** @type {Error} */ (error).message);
    }
  }

  /** @param {string} text */
  showProblem(text) {
    fill(this.body, el("p", { class: "problem", role: "alert" }, text), el("p", {}, el("button", { class: "button", type: "button", click: () => void this.check() }, "Ask again")));
  }
}
