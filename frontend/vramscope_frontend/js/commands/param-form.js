// The parameters of a command as fields of its dialog.

import { el } from "../dom.js";

/** @typedef {import("./catalogue.js").ParamField} ParamField */

export class ParamForm {
  /**
   * @param {ParamField[]} fields
   * @param {Record<string, any>} [given] values that stand there at first, over those of the fields
   * @param {() => void} [onChange]
   */
  constructor(fields, given = {}, onChange = () => undefined) {
    this.fields = fields.map((field) => (field.key in given ? { ...field, value: textOf(field, given[field.key]) } : field));
    /** @type {Map<string, HTMLInputElement | HTMLSelectElement>} */
    this.inputs = new Map();
    this.element = fields.length === 0 ? null : el("section", { class: "param-form" }, el("h3", {}, "How"), ...this.fields.map((field) => this.row(field)));
    this.element?.addEventListener("input", onChange);
  }

  /** @param {ParamField} field */
  row(field) {
    const input = field.kind === "choice" ? choiceOf(field) : inputOf(field);
    this.inputs.set(field.key, input);
    const note = field.note ? el("small", {}, field.note) : null;
    if (field.kind === "flag") return el("label", { class: "check" }, input, el("span", {}, field.label, note));
    return el("label", { class: "field" }, el("span", {}, field.label), el("span", { class: "with-unit" }, input, field.unit ?? null), note);
  }

  /** To the first field that is still empty, else to none: Cancel keeps the focus. */
  focus() {
    for (const input of this.inputs.values()) if (input instanceof HTMLInputElement && input.type !== "checkbox" && input.value === "" ) return input.focus();
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
 * How a value of the protocol stands in its field.
 * @param {ParamField} field
 * @param {any} value
 * @returns {string | boolean}
 */
export function textOf(field, value) {
  if (field.kind === "flag") return value === true;
  if (field.kind === "choice") return field.options?.find((option) => ("means" in option ? option.means === value : option.value === value))?.value ?? String(field.value);
  if (Array.isArray(value)) return value.join(", ");
  return value === null || value === undefined ? "" : String(value);
}

/**
 * A value as the protocol has it.
 * @param {ParamField} field
 * @param {string | boolean} given
 */
export function valueOf(field, given) {
  const text = String(given).trim();
  switch (field.kind) {
    case "number":
      return text === "" ? null : Number(text);
    case "numbers":
      return numbersOf(text);
    case "choice": {
      const option = field.options?.find(({ value }) => value === given);
      return option && "means" in option ? option.means : given;
    }
    default:
      return given;
  }
}

/**
 * @param {ParamField} field
 * @param {string} given
 */
export function problemOf(field, given) {
  const text = given.trim();
  if (field.kind === "choice") {
    const option = field.options?.find(({ value }) => value === given);
    return !option || ("means" in option && option.means === undefined) ? `${field.label}: choose one.` : null;
  }
  if (field.kind === "text") {
    if (text === "" && !field.optional) return `${field.label}: a text is needed.`;
    return field.most && text.length > field.most ? `${field.label}: at most ${field.most.toLocaleString("en-US")} characters.` : null;
  }
  if (field.kind === "numbers") {
    const values = numbersOf(text);
    const { most = Infinity, max = Infinity } = field;
    return values.length > most || values.some((value) => !Number.isInteger(value) || value < 0 || value > max) ? `${field.label}: at most ${most} whole numbers, with commas between.` : null;
  }
  if (field.kind !== "number") return null;
  if (text === "") return field.optional ? null : `${field.label}: a number is needed.`;
  const value = Number(text);
  const { min = -Infinity, max = Infinity } = field;
  if (!Number.isFinite(value) || (!field.decimal && !Number.isInteger(value)) || value < min || value > max) return `${field.label}: a ${field.decimal ? "" : "whole "}number${boundsText(min, max)}.`;
  return null;
}

/**
 * @param {number} min
 * @param {number} max
 */
function boundsText(min, max) {
  const text = (/** @type {number} */ value) => value.toLocaleString("en-US");
  if (Number.isFinite(min) && Number.isFinite(max)) return ` from ${text(min)} to ${text(max)}`;
  if (Number.isFinite(min)) return ` of at least ${text(min)}`;
  return Number.isFinite(max) ? ` of at most ${text(max)}` : "";
}

/** @param {string} text */
function numbersOf(text) {
  return text === "" ? [] : text.split(/[\s,]+/).filter(Boolean).map(Number);
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
  if (field.kind !== "number") return el("input", { type: "text", value: String(field.value), spellcheck: "false", autocomplete: "off" });
  return el("input", { type: "number", min: field.min, max: field.max, step: field.decimal ? "any" : 1, value: String(field.value), inputmode: field.decimal ? "decimal" : "numeric" });
}
