// What the memory of the device consists of at a moment, as layers of the chart. A byte is in one
// layer; what is not known is null and shown as not known.

import * as fields from "./fields.js";
import { known } from "./format.js";
import { account } from "./waterfall.js";

/** @typedef {import("./waterfall.js").Moment} Moment */
/**
 * @typedef {"tensors" | "held" | "within" | "parameters" | "gradients" | "optimizer" | "buffers" | "activations" | "unsplit" | "grown" | "pending" | "stranded" | "private" | "inside" | "cached" | "context" | "driver" | "other" | "unknown"} LayerId
 */
/** @typedef {{id: LayerId, name: string, definition: string, pattern: "" | "." | "/" | "\\" | "x" | "-"}} Layer */

/** @type {Layer[]} bottom to top */
export const LAYERS = [
  { id: "tensors", name: "Allocated by tensors", pattern: "", definition: "Bytes in blocks handed out to tensors, each rounded up to its block size." },
  { id: "held", name: "Held at step end", pattern: "", definition: "Allocated when the step ends: what one step hands to the next, such as parameters and optimizer state." },
  { id: "within", name: "More within the step", pattern: "", definition: "Allocated at the highest known moment of the step beyond what is held at its end, such as activations." },
  { id: "parameters", name: "Parameters", pattern: "", definition: "Storages of the model's parameters; views and tied weights count once." },
  { id: "gradients", name: "Gradients", pattern: "", definition: "Storages of the parameters' gradients that are known to be there at that moment." },
  { id: "optimizer", name: "Optimizer state", pattern: "", definition: "Tensors that the optimizers keep for each parameter, such as Adam's two averages." },
  { id: "buffers", name: "Buffers", pattern: "", definition: "Buffers of the modules, such as running statistics and caches of position embeddings." },
  { id: "activations", name: "Activations and the rest", pattern: "", definition: "Every other live tensor: activations that the backward needs, inputs, temporaries." },
  { id: "unsplit", name: "Gradients or activations", pattern: "x", definition: "In tensors, but not split at that moment: gradients are made and activations are freed while the backward runs." },
  { id: "grown", name: "Grew since warm-up", pattern: "\\", definition: "Allocated at the end of the step beyond what was allocated when the growth began: what the finding accuses." },
  { id: "pending", name: "Pending free", pattern: ".", definition: "Freed by Python, but another stream may still use it: active minus allocated." },
  { id: "stranded", name: "Stranded in segments", pattern: "/", definition: "Free pieces of segments that are partly in use; they cannot be returned." },
  { id: "private", name: "Free in private pools", pattern: "\\", definition: "Free in the pools of CUDA graphs and of the job's own memory pools; nothing else may use it." },
  { id: "inside", name: "Cached or stranded", pattern: "x", definition: "Free inside PyTorch's segments at that moment; the counters do not split it." },
  { id: "cached", name: "Cached, returnable", pattern: "", definition: "Whole segments without a live block: empty_cache gives them back." },
  { id: "context", name: "CUDA context, libraries", pattern: "", definition: "What the driver counts to this process beyond what PyTorch reserved." },
  { id: "driver", name: "Held by the driver", pattern: "-", definition: "What the driver keeps of the device for itself: neither used by a process nor free." },
  { id: "other", name: "Other processes", pattern: "\\", definition: "Memory that the driver counts to other processes." },
  { id: "unknown", name: "Not accounted for", pattern: "x", definition: "Used on the device, but nothing says by whom." },
];

/** Layers that stand for the categories where these are not known. */
export const UNDIVIDED_LAYERS = /** @type {const} */ (["tensors", "held", "within"]);
/** Layers that divide what tensors hold. */
export const CATEGORY_LAYERS = /** @type {const} */ (["parameters", "gradients", "optimizer", "buffers", "activations", "unsplit"]);

/**
 * @typedef {object} Composition
 * @property {Record<LayerId, number | null>} layers
 * @property {number | null} reserved
 * @property {number | null} active
 * @property {number | null} allocated
 * @property {number | null} used  on the device; PyTorch's reserved where the driver says nothing
 * @property {boolean} usedKnown
 * @property {number | null} free
 * @property {boolean} isSplit whether categories are known
 * @property {boolean} reservedAtMost highest of the step, maybe at another instant than the rest
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
 * @property {Moment} [moment]
 * @property {number | null} [total]
 * @property {number | null} [free]
 * @property {boolean} [reservedAtMost]
 * @property {{part: number | null, parameters: number | null, gradients: number | null, gradientsKept: number | null, optimizerState: number | null, optimizerBefore: number | null, buffers: number | null}} [categories]
 * @property {{returnable: number | null, stranded: number | null, privatePool: number | null}} [cache] as of the last look at the segments
 */

const UNDIVIDED = { tensors: null, held: null, within: null };
const NO_CATEGORIES = { part: null, parameters: null, gradients: null, gradientsKept: null, optimizerState: null, optimizerBefore: null, buffers: null };

/**
 * @param {Counters} counters
 * @param {number | null} limit_bytes
 * @returns {Composition}
 */
export function compose(counters, limit_bytes) {
  const { allocated, reserved, used } = counters;
  const active = known(counters.active) ? Math.max(counters.active, allocated ?? 0) : allocated;
  const moment = counters.moment ?? "instant";
  const categories = counters.categories ?? NO_CATEGORIES;
  // Without categories the end of the step divides what tensors hold, which is less but is known.
  const isSplit = known(categories.parameters);
  const device = deviceOf(counters);
  const parts = account({
    ...device,
    ...cutOf(counters, reserved, active),
    reserved, active, allocated,
    peak_reserved: reserved, peak_active: active, peak_allocated: allocated, peak_part: categories.part,
    parameters: categories.parameters, gradients: categories.gradients, gradients_kept: categories.gradientsKept, buffers: categories.buffers,
    optimizer_state: categories.optimizerState, optimizer_state_before: categories.optimizerBefore,
  }, moment);
  const stand_in = isSplit ? UNDIVIDED : splitAllocated(allocated, counters.heldAtEnd);
  /** @type {Record<LayerId, number | null>} */
  const layers = {
    ...stand_in,
    parameters: isSplit ? parts.parameters : null,
    gradients: isSplit ? parts.gradients : null,
    optimizer: isSplit ? parts.optimizer_state : null,
    buffers: isSplit ? parts.buffers : null,
    activations: isSplit ? parts.activations : null,
    unsplit: isSplit ? parts.not_split : null,
    grown: null,
    pending: parts.pending_free,
    stranded: parts.stranded,
    private: parts.private_pool,
    inside: parts.cache_not_split,
    cached: parts.returnable,
    context: parts.outside,
    driver: parts.driver,
    other: parts.other_processes,
    unknown: known(used) ? parts.unknown : null,
  };
  const inside = known(reserved) ? (layers.context ?? 0) + (layers.driver ?? 0) + (layers.other ?? 0) + (layers.unknown ?? 0) + reserved : null;
  return {
    layers,
    reserved,
    active,
    allocated,
    used: inside,
    usedKnown: known(used),
    free: known(limit_bytes) && known(inside) ? Math.max(0, limit_bytes - inside) : null,
    isSplit,
    reservedAtMost: counters.reservedAtMost ?? false,
  };
}

/** Where memory that grew is counted as long as nothing accuses it: the first that is known. */
const GROWN_FROM = /** @type {const} */ (["activations", "held", "tensors"]);

/**
 * The same state with what grew as a layer of its own.
 * @param {Composition} state
 * @param {number} grown_bytes
 * @returns {Composition}
 */
export function withGrown(state, grown_bytes) {
  const from = GROWN_FROM.find((id) => known(state.layers[id]) && (id !== "tensors" || !known(state.layers.held)));
  if (!from) return state;
  const had = state.layers[from] ?? 0;
  const grown = Math.min(had, Math.max(0, grown_bytes));
  return { ...state, layers: { ...state.layers, [from]: had - grown, grown } };
}

/** So much may be without a name where every byte is said to have one. */
const NAMELESS_SHARE = 0.01;

/**
 * Whether everything that is used has a name.
 * @param {Composition} state
 */
export function isNamed({ layers, isSplit, usedKnown, used }) {
  const nameless = (layers.unknown ?? 0) + (layers.inside ?? 0) + (layers.unsplit ?? 0);
  return isSplit && usedKnown && known(layers.unknown) && known(layers.activations) && known(used) && nameless < NAMELESS_SHARE * used;
}

/**
 * The driver's side. It may be asked a little later or earlier than the allocator.
 * @param {Counters} counters
 */
function deviceOf({ reserved, used, process, other, total = null, free = null }) {
  if (!known(used)) return { total, used, free, process, other, sample_reserved: reserved };
  // Never less than what PyTorch holds, however late the driver notices it.
  const most = Math.max(used, reserved ?? 0);
  const size = Math.max(total ?? 0, most);
  const left = Math.min(known(free) && known(total) ? free : size - most, size - most);
  return { total: size, used: most, free: left, process, other, sample_reserved: reserved };
}

/**
 * How the free part of the segments is cut. The last look at the segments may be older than the
 * moment; where it does not add up to what is free now, PyTorch's own counter of that moment is used.
 * @param {Counters} counters
 * @param {number | null} reserved
 * @param {number | null} active
 */
function cutOf({ inactiveSplit, cache }, reserved, active) {
  const rest = known(reserved) && known(active) ? Math.max(0, reserved - active) : null;
  const look = { returnable: cache?.returnable ?? null, stranded: cache?.stranded ?? null, private_pool: cache?.privatePool ?? null };
  const seen = (look.returnable ?? 0) + (look.stranded ?? 0) + (look.private_pool ?? 0);
  if (rest === null || (known(look.returnable) && known(look.stranded) && Math.abs(seen - rest) <= 0.01 * rest + CLOSE_BYTES)) return look;
  // Expandable segments are not in that counter: where a look saw pieces and it says 0, it is no help.
  if (!known(inactiveSplit) || (inactiveSplit === 0 && (look.stranded ?? 0) > 0)) return { returnable: null, stranded: null, private_pool: null };
  const stranded = Math.min(rest, inactiveSplit);
  return { returnable: rest - stranded, stranded, private_pool: null };
}

const CLOSE_BYTES = 2 * 2 ** 20;

/**
 * @param {number | null} allocated
 * @param {number | null} heldAtEnd
 */
function splitAllocated(allocated, heldAtEnd) {
  if (!known(allocated) || !known(heldAtEnd)) return { tensors: allocated, held: null, within: null };
  const held = Math.min(allocated, heldAtEnd);
  return { tensors: 0, held, within: allocated - held };
}

/** Value of a series in one row; null where it is not known. @typedef {(name: string) => number | null} RowReader */

/**
 * The state that a row was taken in: a moment of its step, or the instant of the sample.
 * @param {Record<string, number>} row
 * @param {boolean} exact false where each field is the highest of a bin, so that no split did exist
 * @param {number | null} heldAtEnd
 * @param {Moment} [moment]
 * @param {Record<string, number>} [step] row of the step whose categories are those of the moment
 * @returns {Counters}
 */
export function countersAt(row, exact, heldAtEnd, moment = "instant", step = row) {
  return countersFrom((name) => row[name] ?? null, exact, heldAtEnd, moment, (name) => step[name] ?? null);
}

/**
 * The same from columns: a picture reads a thousand rows, four times a second.
 * @param {RowReader} at
 * @param {boolean} exact
 * @param {number | null} heldAtEnd
 * @param {Moment} moment
 * @param {RowReader} atStep
 * @returns {Counters}
 */
export function countersFrom(at, exact, heldAtEnd, moment, atStep) {
  return {
    allocated: at(fields.ALLOCATED),
    active: at(fields.ACTIVE),
    reserved: at(fields.RESERVED),
    inactiveSplit: exact ? at(fields.INACTIVE_SPLIT) : null,
    used: at(fields.DEVICE_USED),
    process: at(fields.DEVICE_PROCESS),
    other: at(fields.DEVICE_OTHER),
    heldAtEnd,
    moment,
    total: at(fields.DEVICE_TOTAL),
    free: at(fields.DEVICE_FREE),
    reservedAtMost: at(AT_MOST) === 1,
    categories: {
      part: at(fields.PEAK_PART),
      parameters: atStep(fields.PARAMETERS),
      gradients: atStep(fields.GRADIENTS),
      gradientsKept: atStep(fields.GRADIENTS_KEPT),
      optimizerState: atStep(fields.OPTIMIZER_STATE),
      optimizerBefore: atStep(OPTIMIZER_BEFORE),
      buffers: atStep(fields.BUFFERS),
    },
    cache: exact ? { returnable: at(fields.RETURNABLE), stranded: at(fields.STRANDED), privatePool: at(fields.PRIVATE_POOL) } : undefined,
  };
}

/** Optimizer state at the end of the step before. */
export const OPTIMIZER_BEFORE = "optimizer_state_before";
/** 1 where reserved is the highest of the step, maybe at another instant. */
export const AT_MOST = "reserved_at_most";
