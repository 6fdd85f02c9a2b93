// A rank as it is twenty steps after a command: memory, and step times on both sides. Pure.

import { effectOf } from "./effects.js";
import * as fields from "../fields.js";
import { known } from "../format.js";
import { quantile } from "../growth.js";

/** @typedef {{reserved: number | null, stranded: number | null, used: number | null, before_s: number | null, after_s: number | null, later_s: number | null}} Later */

export const LATER_STEPS = 20;

/**
 * Use of the device where the reserved bytes are known: what lies outside of PyTorch stays as it was.
 * @param {number | null} reserved
 * @param {number | null} sampled_used
 * @param {number | null} sampled_reserved
 */
export function usedBeside(reserved, sampled_used, sampled_reserved) {
  return known(reserved) && known(sampled_used) && known(sampled_reserved) ? reserved + Math.max(0, sampled_used - sampled_reserved) : null;
}

/**
 * @param {import("../messages.js").StepsPayload} payload
 * @param {number} at
 * @returns {Later}
 */
export function laterFrom(payload, at) {
  const between = (/** @type {number} */ from, /** @type {number} */ to) => {
    const values = payload.step.flatMap((step, i) => (step >= from && step <= to ? [payload.columns[fields.STEP_DURATION]?.[i] ?? NaN] : []));
    const median = quantile(values, 0.5);
    return known(median) ? median / 1e6 : null;
  };
  const index = payload.step.findLastIndex((step) => step <= at + LATER_STEPS);
  const value = (/** @type {string} */ name) => payload.columns[name]?.[index] ?? null;
  return { reserved: value(fields.RESERVED), stranded: value(fields.INACTIVE_SPLIT), used: value(fields.DEVICE_USED), before_s: between(at - LATER_STEPS, at - 1), after_s: between(at + 1, at + 1), later_s: between(at + 2, at + LATER_STEPS) };
}

/**
 * What is still returned then: the fall of the reserved bytes that lasted.
 * @param {import("../messages.js").Receipt} receipt
 * @param {Later | null | undefined} later
 */
export function stillReturned(receipt, later) {
  const before = effectOf(receipt.before, null).reserved;
  return known(before) && later && known(later.reserved) ? Math.max(0, before - later.reserved) : null;
}

/**
 * What the dry run before it had foretold: the newest one of the same kind for the same ranks.
 * @param {import("../messages.js").Command[]} commands oldest first
 * @param {import("../messages.js").Command} command
 */
export function foretold(commands, command) {
  const dry = commands.findLast((one) => one.dry_run && one.state === "done" && one.name === command.name && one.created_ns <= command.created_ns && String(one.ranks) === String(command.ranks));
  const amounts = dry ? Object.values(dry.receipts).map((receipt) => receipt.returned_bytes) : [];
  return amounts.length && amounts.every(known) ? amounts.reduce((/** @type {number} */ sum, bytes) => sum + /** @type {number} */ (bytes), 0) : null;
}
