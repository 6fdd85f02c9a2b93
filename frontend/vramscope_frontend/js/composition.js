// What the memory of the device consists of, as far as the counters say. What they do not say is
// null and shown as not known; a byte is counted once.

import { known } from "./format.js";
import * as fields from "./fields.js";

/**
 * @typedef {"tensors" | "held" | "within" | "pending" | "stranded" | "inside" | "cached" | "context" | "unknown" | "other"} LayerId
 */
/** @typedef {{id: LayerId, name: string, definition: string, pattern: "" | "." | "/" | "\\" | "x"}} Layer */

/** @type {Layer[]} bottom to top */
export const LAYERS = [
  { id: "tensors", name: "Allocated by tensors", pattern: "", definition: "Bytes in blocks handed out to tensors, each rounded up to its block size." },
  { id: "held", name: "Held at step end", pattern: "", definition: "Allocated when the step ends: what one step hands to the next, such as parameters and optimizer state." },
  { id: "within", name: "More within the step", pattern: "", definition: "Allocated at the highest known moment of the step beyond what is held at its end, such as activations." },
  { id: "pending", name: "Pending free", pattern: ".", definition: "Freed by Python, but another stream may still use it: active minus allocated." },
  { id: "stranded", name: "Stranded in segments", pattern: "/", definition: "Free pieces of segments that are partly in use; they cannot be returned." },
  { id: "inside", name: "Cached or stranded", pattern: "x", definition: "Free inside PyTorch's segments at that moment; the counters do not split it." },
  { id: "cached", name: "Cached, returnable", pattern: "", definition: "Whole segments without a live block: empty_cache gives them back." },
  { id: "context", name: "CUDA context, libraries", pattern: "", definition: "What the driver counts to this process beyond what PyTorch reserved." },
  { id: "unknown", name: "Not accounted for", pattern: "x", definition: "Used on the device, but nothing says by whom." },
  { id: "other", name: "Other processes", pattern: "\\", definition: "Memory that the driver counts to other processes." },
];

/**
 * @typedef {object} Composition
 * @property {Record<LayerId, number | null>} layers
 * @property {number | null} reserved
 * @property {number | null} active
 * @property {number | null} allocated
 * @property {number | null} used  on the device; PyTorch's reserved where the driver says nothing
 * @property {boolean} usedKnown
 * @property {number | null} free
 */

/**
 * @typedef {object} Counters
 * @property {number | null} allocated
 * @property {number | null} active
 * @property {number | null} reserved
 * @property {number | null} inactiveSplit  null where it is not known for that moment
 * @property {number | null} used
 * @property {number | null} process
 * @property {number | null} other
 * @property {number | null} heldAtEnd allocated at the end of a step; null where no step is known
 */

/**
 * @param {Counters} counters
 * @param {number | null} limit_bytes
 * @returns {Composition}
 */
export function compose(counters, limit_bytes) {
  const { allocated, reserved, inactiveSplit, used, process, other } = counters;
  const active = counters.active ?? allocated;
  const rest = known(reserved) && known(active) ? Math.max(0, reserved - active) : null;
  const split = known(rest) && known(inactiveSplit) ? Math.min(rest, inactiveSplit) : null;
  // The driver and the allocator are not read at the same instant: the later of two may be ahead.
  const onDevice = known(used) ? Math.max(used, reserved ?? 0) : null;
  const outside = known(onDevice) && known(reserved) ? onDevice - reserved : null;
  const context = known(process) && known(reserved) ? clamp(process - reserved, outside) : null;
  const others = known(other) ? clamp(other, known(outside) ? outside - (context ?? 0) : null) : null;
  const unknown = known(outside) ? Math.max(0, outside - (context ?? 0) - (others ?? 0)) : null;
  const highest = onDevice ?? reserved;
  return {
    layers: {
      ...splitAllocated(allocated, counters.heldAtEnd),
      pending: known(active) && known(allocated) ? Math.max(0, active - allocated) : null,
      stranded: split,
      inside: split === null ? rest : 0,
      cached: known(split) && known(rest) ? rest - split : null,
      context,
      unknown,
      other: others,
    },
    reserved,
    active,
    allocated,
    used: highest,
    usedKnown: known(used),
    free: known(limit_bytes) && known(highest) ? Math.max(0, limit_bytes - highest) : null,
  };
}

/**
 * @param {number | null} allocated
 * @param {number | null} heldAtEnd
 */
function splitAllocated(allocated, heldAtEnd) {
  if (!known(allocated) || !known(heldAtEnd)) return { tensors: allocated, held: null, within: null };
  const held = Math.min(allocated, heldAtEnd);
  return { tensors: 0, held, within: allocated - held };
}

/**
 * @param {number} value
 * @param {number | null} most
 */
function clamp(value, most) {
  return Math.max(0, known(most) ? Math.min(value, most) : value);
}

/**
 * The state that a row was taken in: a moment of its step, or the instant of the sample.
 * @param {Record<string, number>} row
 * @param {boolean} exact false where each field is the highest of a bin, so that no split did exist
 * @param {number | null} heldAtEnd
 * @returns {Counters}
 */
export function countersAt(row, exact, heldAtEnd) {
  return {
    allocated: row[fields.ALLOCATED] ?? null,
    active: row[fields.ACTIVE] ?? null,
    reserved: row[fields.RESERVED] ?? null,
    inactiveSplit: exact ? (row[fields.INACTIVE_SPLIT] ?? null) : null,
    used: row[fields.DEVICE_USED] ?? null,
    process: row[fields.DEVICE_PROCESS] ?? null,
    other: row[fields.DEVICE_OTHER] ?? null,
    heldAtEnd,
  };
}
