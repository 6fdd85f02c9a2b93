// The form of a policy, in the order in which it is read: when, for how long, what, how often.

import { api } from "../api.js";
import { CATALOGUE, commandEntry } from "../commands/catalogue.js";
import { ParamForm } from "../commands/param-form.js";
import { bodyOf, EMPTY_FIELDS, fieldsOf, problemOfPolicy, scaleOf } from "../commands/policy-body.js";
import { el, fill, setText } from "../dom.js";
import { KINDS } from "../findings.js";
import { Segmented } from "./parts.js";

/** @typedef {import("../messages.js").Policy} Policy */
/** @typedef {import("../messages.js").Run} Run */
/** @typedef {import("../commands/policy-body.js").PolicyFields} PolicyFields */

const SEVERITIES = ["info", "warning", "critical"];

export class PolicyDialog {
  /**
   * @param {Run} run
   * @param {Policy | null} policy that is changed; null makes a new one
   * @param {() => void} onSaved
   */
  constructor(run, policy, onSaved) {
    this.run = run;
    this.policy = policy;
    this.onSaved = onSaved;
    /** @type {PolicyFields} */
    this.fields = policy ? fieldsOf(policy) : { ...EMPTY_FIELDS };
    /** @type {HTMLElement | null} */
    this.unit = null;
    this.form = this.paramsOf(policy?.then.params);
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.parts = el("div", { class: "policy-form" });
    this.save = el("button", { class: "button primary", type: "submit" }, policy ? "Save the policy" : "Make the policy");
    this.cancel = el("button", { class: "button", type: "button", click: () => this.dialog.close() }, "Cancel");
    this.names = el("datalist", { id: "policy-series" });
    this.dialog = el("dialog", { class: "command-dialog", "aria-labelledby": "policy-title", keydown: (/** @type {KeyboardEvent} */ event) => event.stopPropagation(), close: () => this.dialog.remove() },
      el("form", { method: "dialog", submit: (/** @type {Event} */ event) => void this.submit(event) },
        el("header", {}, el("h2", { id: "policy-title" }, policy ? "Change a policy" : "New policy"), el("span", { class: "context" }, policy ? policy.name : "switched off until you switch it on")),
        el("div", { class: "body" }, this.problem, this.parts, this.names),
        el("footer", {}, el("span", { class: "left ink2" }, "Everything that it does is written to the audit log."), this.cancel, this.save)));
  }

  open() {
    document.body.append(this.dialog);
    this.show();
    this.dialog.showModal();
    this.cancel.focus();
    void this.readNames();
  }

  async readNames() {
    try {
      const names = await api.seriesNames();
      fill(this.names, ...names.map(({ name, definition }) => el("option", { value: name }, definition)));
    } catch {
      // Without the list the name can still be typed: the server knows which there are.
    }
  }

  /** @param {Record<string, any>} [given] */
  paramsOf(given = {}) {
    return new ParamForm(commandEntry(this.fields.command)?.params ?? [], given);
  }

  show() {
    const { fields } = this;
    const entry = commandEntry(fields.command);
    const kind = this.segmented("Condition", "kind", [["series", "A series"], ["finding", "A finding"]]);
    fill(this.parts,
      row("Name", this.text("name", "Name", { maxlength: 80 })),
      row("When", kind),
      ...(fields.kind === "series" ? this.seriesRows() : this.findingRows()),
      row("For", this.number("held", "For how long"), this.choice("heldUnit", "Unit", [["seconds", "seconds"], ["steps", "steps"]]), el("span", { class: "ink3" }, "empty: at once")),
      row("Then", this.choice("command", "Command", CATALOGUE.filter((one) => one.menu !== null).map((one) => [one.name, one.title]), () => this.commandChosen()), entry?.wholeRun ? el("span", { class: "ink2" }, "on all ranks") : this.choice("target", "Ranks that it is sent to", [["all", "on all ranks"], ["matching", "where it holds"]])),
      this.form.element,
      row("At most every", this.number("every_min", "At most every, in minutes"), el("span", { class: "ink2" }, "min, for each run")),
      row("What it may do", this.segmented("Mode", "mode", [["dry_run", "Dry run only"], ["act", "Act"]]), el("span", { class: "ink3" }, fields.mode === "act" ? "it sends the command by itself" : "it logs what it would do")),
      row("Runs", this.segmented("Runs", "isForAll", [[false, this.policy?.run && this.policy.run !== this.run.id ? "Its run" : "This run"], [true, "All runs"]])),
      entry?.changesTraining && fields.mode === "act" ? el("label", { class: "consent" }, this.box("allowsTraining", "Allow it to change training"), el("span", {}, el("b", {}, "It may change training without asking. "), entry.consent ?? "")) : null);
  }

  seriesRows() {
    const unit = scaleOf(this.fields.series) === 1 ? "" : "GiB";
    return [row("", this.text("series", "Series", { list: "policy-series", class: "wide" }, () => this.showUnit())), row("", this.choice("op", "Compared", [[">", "above"], ["<", "below"]]), this.number("value", "Value"), (this.unit = el("span", {}, unit)), this.choice("ranks", "On which ranks it has to hold", [["any", "on any rank"], ["all", "on all ranks"]]))];
  }

  showUnit() {
    if (this.unit) setText(this.unit, scaleOf(this.fields.series) === 1 ? "" : "GiB");
  }

  findingRows() {
    return [row("", this.choice("finding", "Kind of finding", [["", "any finding"], ...KINDS]), this.choice("severity", "At least", SEVERITIES.map((one) => [one, `at least ${one}`])), el("label", { class: "check" }, this.box("confirmed", "Confirmed only"), "confirmed only"))];
  }

  commandChosen() {
    this.form = this.paramsOf();
    if (commandEntry(this.fields.command)?.wholeRun) this.fields.target = "all";
    this.show();
  }

  /** @param {Event} event */
  async submit(event) {
    event.preventDefault();
    const problem = problemOfPolicy(this.fields) ?? this.form.problem;
    if (problem) {
      this.tell(problem);
      return;
    }
    const before = this.policy ? { run: this.policy.run, is_on: this.policy.is_on, ranks: this.policy.then.ranks } : null;
    this.save.disabled = true;
    try {
      await api.savePolicy(bodyOf(this.fields, this.run.id, this.form.values, before), this.policy?.id ?? null);
      this.dialog.close();
      this.onSaved();
    } catch (error) {
      this.tell(/** @type {Error} */ (error).message);
    }
    this.save.disabled = false;
  }

  /** @param {string} text */
  tell(text) {
    this.problem.hidden = false;
    setText(this.problem, text);
  }

  /**
   * @param {keyof PolicyFields} key
   * @param {string} label
   * @param {Record<string, any>} [more]
   * @param {() => void} [onInput]
   */
  text(key, label, more = {}, onInput = () => undefined) {
    const input = el("input", { type: "text", "aria-label": label, value: String(this.fields[key]), spellcheck: "false", autocomplete: "off", ...more });
    input.addEventListener("input", () => {
      Object.assign(this.fields, { [key]: input.value });
      onInput();
    });
    return input;
  }

  /**
   * @param {keyof PolicyFields} key
   * @param {string} label
   */
  number(key, label) {
    return this.text(key, label, { type: "number", step: "any" });
  }

  /**
   * @param {keyof PolicyFields} key
   * @param {string} label
   */
  box(key, label) {
    const input = el("input", { type: "checkbox", "aria-label": label });
    input.checked = this.fields[key] === true;
    input.addEventListener("change", () => Object.assign(this.fields, { [key]: input.checked }));
    return input;
  }

  /**
   * @param {keyof PolicyFields} key
   * @param {string} label
   * @param {string[][]} options value and text
   * @param {() => void} [onChange]
   */
  choice(key, label, options, onChange = () => undefined) {
    const select = el("select", { "aria-label": label }, ...options.map(([value, text]) => el("option", { value }, text)));
    select.value = String(this.fields[key]);
    select.addEventListener("change", () => {
      Object.assign(this.fields, { [key]: select.value });
      onChange();
    });
    return select;
  }

  /**
   * @param {string} label
   * @param {keyof PolicyFields} key
   * @param {[any, string][]} options
   */
  segmented(label, key, options) {
    const control = new Segmented(label, options.map(([value, text]) => ({ value, text })), (value) => {
      Object.assign(this.fields, { [key]: value });
      this.show();
      const again = this.parts.querySelector(`[aria-label="${label}"] [data-value="${value}"]`);
      if (again instanceof HTMLElement) again.focus();
    });
    control.choose(this.fields[key]);
    return control.element;
  }
}

/**
 * @param {string} name
 * @param {...import("../dom.js").Child} parts
 */
function row(name, ...parts) {
  return el("div", { class: "policy-row" }, el("span", {}, name), el("div", {}, ...parts));
}
