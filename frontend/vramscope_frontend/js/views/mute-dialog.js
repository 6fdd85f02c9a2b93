// Muting a finding: a reason is needed, and until when.

import { api } from "../api.js";
import { el } from "../dom.js";
import { findingTitle } from "../findings.js";

/** @typedef {import("../findings/messages.js").Finding} Finding */
/** @typedef {import("../findings/messages.js").MuteUntil} MuteUntil */

const MOST_CHARACTERS = 400;
/** @type {{value: MuteUntil, text: string, note: string, label: string}[]} */
const UNTIL = [
  { value: "run", text: "This run", note: "until the run ends", label: "Mute for this run" },
  { value: "line", text: "This line", note: "in every run of this name, now and later", label: "Mute this line" },
  { value: "day", text: "One day", note: "it speaks again in 24 hours if it still holds", label: "Mute for a day" },
];

export class MuteDialog {
  /**
   * @param {Finding} finding
   * @param {(muted: Finding) => void} onDone
   */
  constructor(finding, onDone) {
    this.finding = finding;
    this.onDone = onDone;
    this.opener = document.activeElement;
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.reason = el("input", { type: "text", maxlength: MOST_CHARACTERS, id: "mute-reason", autocomplete: "off", placeholder: "Replay buffer, full after an hour" });
    this.reason.addEventListener("input", () => this.offer());
    this.choices = UNTIL.filter(({ value }) => value !== "line" || finding.subject).map((choice, i) => {
      const input = el("input", { type: "radio", name: "mute-until", value: choice.value });
      input.checked = i === 0;
      input.addEventListener("change", () => this.offer());
      return { ...choice, input };
    });
    this.cancel = el("button", { class: "button", type: "button", click: () => this.dialog.close() }, "Cancel");
    this.primary = el("button", { class: "button primary", type: "submit", disabled: true }, "Mute for this run");
    const form = el("form", { method: "dialog", submit: (/** @type {Event} */ event) => {
      event.preventDefault();
      void this.send();
    } },
      el("div", { class: "body" },
        el("p", { class: "sentence" }, finding.summary),
        el("p", { class: "sub" }, "A muted finding makes no sentence, no count and no mark. It stays on the page of findings, with the reason and your name."),
        this.problem,
        el("label", { class: "mute-field", for: "mute-reason" }, "Reason, for whoever reads this later"), this.reason,
        el("fieldset", { class: "mute-until" }, el("legend", {}, "Until"), ...this.choices.map(({ input, text, note }) => el("label", {}, input, el("span", {}, text), el("small", {}, note))))),
      el("footer", {}, this.cancel, this.primary));
    this.dialog = el("dialog", { "aria-labelledby": "mute-title", close: () => this.onClose(), keydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event) },
      el("header", {}, el("h2", { id: "mute-title" }, `Mute: ${findingTitle(finding)}`), el("div", { class: "controls" }, el("kbd", {}, "Esc"))), form);
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.cancel.focus();
  }

  onClose() {
    this.dialog.remove();
    if (this.opener instanceof HTMLElement && this.opener.isConnected) this.opener.focus();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    event.stopPropagation();
    const ctrl = event.ctrlKey || event.metaKey;
    // As in every dialog that acts: Enter alone does not press the button.
    if (event.key === "Enter" && event.target === this.reason) event.preventDefault();
    if (event.key === "Enter" && ctrl && !this.primary.disabled) void this.send();
  }

  get until() {
    return this.choices.find(({ input }) => input.checked) ?? this.choices[0];
  }

  offer() {
    this.primary.disabled = this.reason.value.trim() === "";
    this.primary.textContent = this.until.label;
  }

  async send() {
    this.primary.disabled = true;
    try {
      const muted = await api.muteFinding(this.finding.run, this.finding.id, { reason: this.reason.value.trim(), until: this.until.value });
      this.onDone(muted);
      this.dialog.close();
    } catch (error) {
      this.problem.hidden = false;
      this.problem.textContent = `Not muted: ${/** @type {Error} */ (error).message}`;
      this.offer();
    }
  }
}
