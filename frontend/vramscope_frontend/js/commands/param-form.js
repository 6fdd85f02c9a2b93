// The parameters of a command as fields of its dialog.

import { el } from "../dom.js";

/** @typedef {import("./catalogue.js").ParamField} ParamField */

export class ParamForm {
  /** @param {ParamField[]} fields */
  constructor(fields) {
    this.fields = fields;
    /** @type {Map<string, HTMLInputElement | HTMLSelectElement>} */
    this.inputs = new Map();
    this.element = fields.length === 0 ? null : el("section", { class: "param-form" }, el("h3", {}, "How"), ...fields.map((field) => this.row(field)));
  }

  /** @param {ParamField} field */
  row(field) {
    const input = field.kind === "choice" ? choiceOf(field) : inputOf(field);
    this.inputs.set(field.key, input);
    const note = field.note ? el("small", {}, field.note) : null;
    if (field.kind === "flag") return el("label", { class: "check" }, input, el("span", {}, field.label, note));
    return el("label", { class: "field" }, el("span", {}, field.label), el("span", { class: "with-unit" }, input, field.unit ?? null), note);
  }

  /** What is wrong with the fields, null if nothing. */
  get problem() {
    for (const field of this.fields) {
      const why = problemOf(field, this.inputs.get(field.key)?.value ?? "");
      if (why) return why;
    }
    return null;
  }

  /** Parameters as the protocol has them. */
  get values() {
    return Object.fromEntries(this.fields.map((field) => {
      const input = this.inputs.get(field.key);
      return [field.key, valueOf(field, input instanceof HTMLInputElement && field.kind === "flag" ? input.checked : (input?.value ?? ""))];
    }));
  }
}

/**
 * A value as the protocol has it.
 * @param {ParamField} field
 * @param {string | boolean} given
 */
export function valueOf(field, given) {
  if (field.kind !== "number") return given;
  return String(given).trim() === "" ? null : Number(given);
}

/**
 * @param {ParamField} field
 * @param {string} given
 */
export function problemOf(field, given) {
  if (field.kind !== "number") return null;
  const text = given.trim();
  if (text === "") return field.optional ? null : `${field.label}: a number is needed.`;
  const value = Number(text);
  const { min = -Infinity, max = Infinity } = field;
  if (!Number.isInteger(value) || value < min || value > max) return `${field.label}: a whole number from ${min.toLocaleString("en-US")} to ${max.toLocaleString("en-US")}.`;
  return null;
}

/** @param {ParamField} field */
function choiceOf(field) {
  const select = el("select", {}, ...(field.options ?? []).map(({ value, text }) => el("option", { value }, text)));
  select.value = String(field.value);
  return select;
}

/** @param {ParamField} field */
function inputOf(field) {
  if (field.kind === "flag") {
    const box = el("input", { type: "checkbox" });
    box.checked = field.value === true;
    return box;
  }
  return el("input", { type: "number", min: field.min, max: field.max, step: 1, value: String(field.value), inputmode: "numeric" });
}
