// From the fields of a policy's form to what is sent, and back. Pure.

import { GIB } from "../format.js";

/** @typedef {import("../messages.js").Policy} Policy */
/** @typedef {import("../messages.js").PolicyBody} PolicyBody */

/**
 * The fields as texts, as they stand in the form.
 * @typedef {object} PolicyFields
 * @property {string} name
 * @property {boolean} isForAll all runs, else this one
 * @property {"series" | "finding"} kind
 * @property {string} series
 * @property {">" | "<"} op
 * @property {string} value in the unit of the form: GiB for bytes
 * @property {"any" | "all"} ranks
 * @property {string} finding empty is any kind
 * @property {"info" | "warning" | "critical"} severity
 * @property {boolean} confirmed
 * @property {string} held for how long; empty is at once
 * @property {"seconds" | "steps"} heldUnit
 * @property {string} command
 * @property {"all" | "matching"} target
 * @property {string} every_min
 * @property {"dry_run" | "act"} mode
 * @property {boolean} allowsTraining
 */

/** @type {PolicyFields} */
export const EMPTY_FIELDS = { name: "", isForAll: false, kind: "series", series: "device.used_bytes", op: ">", value: "", ranks: "any", finding: "", severity: "critical", confirmed: true, held: "30", heldUnit: "seconds", command: "empty_cache", target: "all", every_min: "10", mode: "dry_run", allowsTraining: false };

/** A series whose values are bytes is given in GiB. @param {string} series */
export function scaleOf(series) {
  return series.includes("_bytes") ? GIB : 1;
}

/**
 * @param {Policy} policy
 * @returns {PolicyFields}
 */
export function fieldsOf(policy) {
  const { when, then } = policy;
  const condition = "series" in when ? { kind: /** @type {const} */ ("series"), series: when.series, op: when.op, value: String(when.value / scaleOf(when.series)), ranks: when.ranks } : { kind: /** @type {const} */ ("finding"), finding: when.finding ?? "", severity: when.severity, confirmed: when.confirmed };
  const held = policy.for === null ? { held: "" } : "steps" in policy.for ? { held: String(policy.for.steps), heldUnit: /** @type {const} */ ("steps") } : { held: String(policy.for.seconds), heldUnit: /** @type {const} */ ("seconds") };
  return { ...EMPTY_FIELDS, ...condition, ...held, name: policy.name, isForAll: policy.run === null, command: then.command, target: then.ranks === "matching" ? "matching" : "all", every_min: String(policy.every_s / 60), mode: policy.mode, allowsTraining: policy.allow_training };
}

/**
 * What is wrong with the fields, null if nothing. The server checks all of it again.
 * @param {PolicyFields} fields
 */
export function problemOfPolicy(fields) {
  const number = (/** @type {string} */ text) => (text.trim() === "" ? NaN : Number(text));
  if (!fields.name.trim()) return "Name: a name is needed; it stands in the audit log.";
  if (fields.kind === "series" && !fields.series.trim()) return "Series: the name of one is needed.";
  if (fields.kind === "series" && !Number.isFinite(number(fields.value))) return "Value: a number is needed.";
  if (fields.held.trim() !== "" && !(number(fields.held) > 0)) return "For: a number above 0, or nothing for at once.";
  if (!(number(fields.every_min) * 60 >= 10)) return "At most every: 10 s or more.";
  return null;
}

/**
 * @param {PolicyFields} fields
 * @param {string} run id of this run
 * @param {Record<string, any>} params of the command
 * @param {{run: string | null, is_on: boolean, ranks: "all" | "matching" | number[]} | null} before what is kept of the policy that is changed
 * @returns {PolicyBody}
 */
export function bodyOf(fields, run, params, before) {
  const held = Number(fields.held);
  return {
    name: fields.name.trim(),
    run: fields.isForAll ? null : (before?.run ?? run),
    when: fields.kind === "series" ? { series: fields.series.trim(), op: fields.op, value: Number(fields.value) * scaleOf(fields.series), ranks: fields.ranks } : { finding: fields.finding || null, severity: fields.severity, confirmed: fields.confirmed },
    for: fields.held.trim() === "" ? null : fields.heldUnit === "steps" ? { steps: Math.round(held) } : { seconds: held },
    then: { command: fields.command, params, ranks: fields.target === "all" && Array.isArray(before?.ranks) ? before.ranks : fields.target },
    every_s: Number(fields.every_min) * 60,
    mode: fields.mode,
    allow_training: fields.allowsTraining,
    is_on: before?.is_on ?? false,
  };
}
