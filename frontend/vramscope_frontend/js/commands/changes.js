// What a receipt tells of values that are no memory counters: settings, batch sizes, thresholds. Pure.

import { count, sizeText } from "../format.js";
import { receiptsOf } from "./effects.js";

/** @typedef {import("../messages.js").Command} Command */
/** @typedef {{what: string, before: string, after: string, isChanged: boolean}} Change */

/** Counters that the table of memory shows already. */
const MEASURED = new Set(["reserved_bytes", "allocated_bytes", "active_bytes", "inactive_split_bytes", "stranded_bytes", "device_free_bytes", "used_bytes", "device.used_bytes", "device.free_bytes"]);

/** @type {Record<string, string>} */
const WORDS = {
  batch_size: "Samples of one rank",
  accumulation: "Passes for each step",
  global_batch: "Global batch",
  fraction: "Part of the device",
  thresholds: "Thresholds",
  enabled: "Collects by itself",
  rate_hz: "Looks a second",
  limit_bytes: "PyTorch may hold",
  max_bytes: "PyTorch may hold",
  workspace_bytes: "Workspaces",
  plans: "Plans",
};

/**
 * Values before and after on the first rank that tells them; nested ones under "outer.inner".
 * @param {Command} command
 * @returns {Change[]}
 */
export function changesOf(command) {
  const first = receiptsOf(command).map(({ receipt }) => receipt).find((receipt) => flat(receipt.before).size + flat(receipt.after).size > 0);
  if (!first) return [];
  const [before, after] = [flat(first.before), flat(first.after)];
  return [...new Set([...before.keys(), ...after.keys()])].map((key) => {
    const [a, b] = [before, after].map((side) => (side.has(key) ? valueText(key, side.get(key)) : "–"));
    return { what: WORDS[key] ?? key, before: a, after: b, isChanged: a !== b };
  });
}

/**
 * @param {Record<string, any> | undefined} side
 * @returns {Map<string, any>}
 */
function flat(side) {
  /** @type {Map<string, any>} */
  const values = new Map();
  for (const [key, value] of Object.entries(side ?? {})) {
    if (MEASURED.has(key) || key.includes(".all.")) continue;
    if (value !== null && typeof value === "object" && !Array.isArray(value)) for (const [inner, one] of Object.entries(value)) values.set(inner, one);
    else values.set(key, value);
  }
  return values;
}

/**
 * @param {string} key
 * @param {any} value
 */
export function valueText(key, value) {
  if (value === null || value === undefined) return "not set";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map((one) => String(one)).join(", ");
  if (typeof value === "number") return key.endsWith("_bytes") ? sizeText(value) : Number.isInteger(value) ? count(value) : String(Math.round(value * 1e6) / 1e6);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
