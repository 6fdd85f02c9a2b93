// What the memory of the device consists of at a moment, as layers of the chart. A byte is in one
// layer; what is not known is null and shown as not known.

import * as fields from "./fields.js";
import { known } from "./format.js";
import { account } from "./waterfall.js";

/** @typedef {import("./waterfall.js").Moment} Moment */
/** @typedef {import("./waterfall.js").Part} Part */
/**
 * @typedef {"tensors" | "held" | "within" | "parameters" | "gradients" | "optimizer" | "buffers" | "activations" | "unsplit" | "pending" | "stranded" | "private" | "inside" | "cached" | "context" | "driver" | "other" | "unknown"} LayerId
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

/** Layers that a step hands on to the next: the floor that the moving part stands on. */
export const STATE_LAYERS = /** @type {const} */ (["held", "parameters", "gradients", "optimizer", "buffers"]);
/** Layers that stand for the categories where these are not known. */
export const UNDIVIDED_LAYERS = /** @type {const} */ (["tensors", "held", "within"]);
/** Layers that divide what tensors hold. */
export const CATEGORY_LAYERS = /** @type {const} */ (["parameters", "gradients", "optimizer", "buffers", "activations", "unsplit"]);

/** @type {Partial<Record<Part, LayerId>>} */
const LAYER_OF_PART = {
  parameters: "parameters", gradients: "gradients", optimizer_state: "optimizer", buffers: "buffers", activations: "activations", not_split: "unsplit",
  pending_free: "pending", stranded: "stranded", private_pool: "private", cache_not_split: "inside", returnable: "cached",
  outside: "context", driver: "driver", other_processes: "other", unknown: "unknown",
};

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
  /** @type {Record<LayerId, number | null>} */
  const layers = { ...emptyLayers(), ...(isSplit ? {} : splitAllocated(allocated, counters.heldAtEnd)) };
  for (const [part, layer] of Object.entries(LAYER_OF_PART)) {
    if (isSplit || !(/** @type {readonly LayerId[]} */ (CATEGORY_LAYERS)).includes(layer)) layers[layer] = parts[/** @type {Part} */ (part)];
  }
  if (!known(used)) layers.unknown = null;
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

/** @returns {Record<LayerId, number | null>} */
function emptyLayers() {
  return /** @type {Record<LayerId, number | null>} */ (Object.fromEntries(LAYERS.map(({ id }) => [id, null])));
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
  return {
    allocated: row[fields.ALLOCATED] ?? null,
    active: row[fields.ACTIVE] ?? null,
    reserved: row[fields.RESERVED] ?? null,
    inactiveSplit: exact ? (row[fields.INACTIVE_SPLIT] ?? null) : null,
    used: row[fields.DEVICE_USED] ?? null,
    process: row[fields.DEVICE_PROCESS] ?? null,
    other: row[fields.DEVICE_OTHER] ?? null,
    heldAtEnd,
    moment,
    total: row[fields.DEVICE_TOTAL] ?? null,
    free: row[fields.DEVICE_FREE] ?? null,
    reservedAtMost: row[AT_MOST] === 1,
    categories: {
      part: row[fields.PEAK_PART] ?? null,
      parameters: step[fields.PARAMETERS] ?? null,
      gradients: step[fields.GRADIENTS] ?? null,
      gradientsKept: step[fields.GRADIENTS_KEPT] ?? null,
      optimizerState: step[fields.OPTIMIZER_STATE] ?? null,
      optimizerBefore: step[OPTIMIZER_BEFORE] ?? null,
      buffers: step[fields.BUFFERS] ?? null,
    },
    cache: exact ? { returnable: row[fields.RETURNABLE] ?? null, stranded: row[fields.STRANDED] ?? null, privatePool: row[fields.PRIVATE_POOL] ?? null } : undefined,
  };
}

/** Optimizer state at the end of the step before. */
export const OPTIMIZER_BEFORE = "optimizer_state_before";
/** 1 where reserved is the highest of the step, maybe at another instant. */
export const AT_MOST = "reserved_at_most";
