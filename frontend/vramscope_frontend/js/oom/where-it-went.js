// Where the memory was when a process ran out of it, and what was asked for on top. Pure.

import { ACTIVE, ALLOCATED, BUFFERS, GRADIENTS, OPTIMIZER_STATE, PARAMETERS, RESERVED } from "../fields.js";
import { known, sizeText } from "../format.js";

/** @typedef {import("./messages.js").OomReport} OomReport */
/** @typedef {import("../composition.js").LayerId} LayerId */
/** @typedef {{id: LayerId | "left", name: string, bytes: number}} Part */
/**
 * @typedef {object} Account
 * @property {number} limit_bytes where the bar ends
 * @property {boolean} isOwnLimit a cap of the process, below the device
 * @property {Part[]} parts from the left; the rest is what is left
 * @property {number | null} left_bytes that the driver would still have given
 * @property {number | null} asked_bytes of the driver
 * @property {number | null} missing_bytes
 */

const CATEGORIES = /** @type {const} */ ([
  [PARAMETERS, "parameters", "parameters"],
  [GRADIENTS, "gradients", "gradients"],
  [OPTIMIZER_STATE, "optimizer", "optimizer state"],
  [BUFFERS, "buffers", "buffers"],
]);

/**
 * @param {OomReport} report
 * @returns {Account | null} null where too little is known for a picture
 */
export function whereItWent(report) {
  const { counters, allowed_bytes: allowed, device_total_bytes: total, device_free_bytes: device_free } = report;
  const reserved = counters?.[RESERVED];
  const limit = known(allowed) && known(total) ? Math.min(allowed, total) : (allowed ?? total);
  if (!known(reserved) || !known(limit) || limit <= 0) return null;
  const isOwnLimit = known(allowed) && known(total) && allowed < total;
  const tensors = tensorParts(report);
  const allocated = tensors.reduce((sum, part) => sum + part.bytes, 0);
  const active = Math.max(allocated, counters[ACTIVE] ?? allocated);
  const parts = [...tensors, { id: /** @type {const} */ ("pending"), name: "pending free", bytes: active - allocated }, { id: /** @type {const} */ ("stranded"), name: "free, in pieces", bytes: Math.max(0, reserved - active) }];
  // A cap is on what PyTorch holds: what lies beside it does not count.
  const beside = isOwnLimit ? [] : outsideParts(report, reserved, limit);
  const used = reserved + beside.reduce((sum, part) => sum + part.bytes, 0);
  const rests = [isOwnLimit ? limit - reserved : null, device_free].filter(known);
  const left = rests.length ? Math.max(0, Math.min(...rests)) : null;
  const asked = report.segment_bytes ?? report.request_bytes;
  return {
    limit_bytes: limit,
    isOwnLimit,
    parts: [...parts, ...beside, { id: /** @type {const} */ ("left"), name: "left", bytes: Math.max(0, limit - used) }].filter((part) => part.bytes > 0),
    left_bytes: left,
    asked_bytes: known(asked) ? asked : null,
    missing_bytes: known(asked) && known(left) && asked > left ? asked - left : null,
  };
}

/**
 * What tensors held, by what they belong to as far as it is known.
 * @param {OomReport} report
 * @returns {Part[]}
 */
function tensorParts({ counters, by_category }) {
  let rest = counters[ALLOCATED] ?? 0;
  /** @type {Part[]} */
  const parts = [];
  for (const [key, id, name] of CATEGORIES) {
    const bytes = by_category?.[key];
    if (!known(bytes)) continue;
    const taken = Math.min(rest, Math.max(0, bytes));
    parts.push({ id, name, bytes: taken });
    rest -= taken;
  }
  const isSplit = parts.length > 0;
  return [...parts, { id: isSplit ? "activations" : "tensors", name: isSplit ? "activations and the rest" : "in tensors", bytes: rest }];
}

/**
 * What lies on the device beside PyTorch's segments.
 * @param {OomReport} report
 * @param {number} reserved
 * @param {number} total
 * @returns {Part[]}
 */
function outsideParts({ outside, processes, device_free_bytes: free }, reserved, total) {
  let rest = known(free) ? Math.max(0, total - free - reserved) : Infinity;
  const take = (/** @type {number} */ bytes) => {
    const taken = Math.min(rest, Math.max(0, bytes));
    rest -= taken;
    return taken;
  };
  const sum = (/** @type {({bytes: number | null} | undefined)[]} */ all) => all.reduce((total_bytes, one) => total_bytes + (one?.bytes ?? 0), 0);
  const own = take(sum(outside ?? []));
  const others = take(sum((processes ?? []).filter((one) => one.own === false)));
  return [
    { id: "context", name: "CUDA context, libraries", bytes: own },
    { id: "other", name: "other processes", bytes: others },
    { id: "unknown", name: "not accounted for", bytes: Number.isFinite(rest) ? rest : 0 },
  ];
}

/**
 * "198 MiB in one piece: 32 MiB too much".
 * @param {Account} account
 */
export function askedText({ asked_bytes, missing_bytes, left_bytes }) {
  if (!known(asked_bytes)) return "what was asked for is not known";
  return `${sizeText(asked_bytes)} in one piece${known(missing_bytes) ? `: ${sizeText(missing_bytes)} too much` : known(left_bytes) ? `; ${sizeText(left_bytes)} were left` : ""}`;
}
