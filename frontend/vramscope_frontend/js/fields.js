// The series that the page asks for, by PyTorch's own names (protocol series.py defines each).

export const ALLOCATED = "allocated_bytes.all.current";
export const ALLOCATED_PEAK = "allocated_bytes.all.peak";
export const ACTIVE = "active_bytes.all.current";
export const ACTIVE_PEAK = "active_bytes.all.peak";
export const RESERVED = "reserved_bytes.all.current";
export const RESERVED_PEAK = "reserved_bytes.all.peak";
export const INACTIVE_SPLIT = "inactive_split_bytes.all.current";
export const DEVICE_USED = "device.used_bytes";
export const DEVICE_PROCESS = "device.process_bytes";
export const DEVICE_OTHER = "device.other_bytes";
export const DEVICE_TOTAL = "device.total_bytes";
export const DEVICE_FREE = "device.free_bytes";
export const DEVICE_ALLOCATIONS = "num_device_alloc";
export const RETRIES = "num_alloc_retries";
export const STEP_DURATION = "step.duration_us";
export const STEP = "step";
export const PHASE = "phase";
export const PEAK_ALLOCATED = "step.peak_allocated_bytes";
export const PEAK_ACTIVE = "step.peak_active_bytes";
export const PEAK_RESERVED = "step.peak_reserved_bytes";
export const PEAK_REQUESTED = "step.peak_requested_bytes";
export const PEAK_PART = "step.peak_part";
export const ALLOCATED_VOLUME = "step.allocated_volume_bytes";
export const PARAMETERS = "category.parameters_bytes";
export const GRADIENTS = "category.gradients_bytes";
export const GRADIENTS_KEPT = "category.gradients_kept_bytes";
export const OPTIMIZER_STATE = "category.optimizer_state_bytes";
export const BUFFERS = "category.buffers_bytes";
export const RETURNABLE = "cache.returnable_bytes";
export const STRANDED = "cache.stranded_bytes";
export const PRIVATE_POOL = "cache.private_pool_bytes";

/** Parts of a step in their order; the place of each plus one is its code in PEAK_PART. */
export const PARTS = /** @type {const} */ (["forward", "backward", "optimizer"]);
/** @typedef {typeof PARTS[number]} PartName */
export const partField = (/** @type {PartName} */ part, /** @type {"peak_bytes" | "volume_bytes" | "time_us"} */ what) => `part.${part}.${what}`;

/** What tensors belong to, at the end of a step. */
export const CATEGORY_FIELDS = [PARAMETERS, GRADIENTS, GRADIENTS_KEPT, OPTIMIZER_STATE, BUFFERS];
/** The exact highest values within a step; agents that do not reset peaks leave them out. */
const PEAK_FIELDS = [PEAK_ALLOCATED, PEAK_ACTIVE, PEAK_RESERVED, PEAK_REQUESTED, PEAK_PART, ALLOCATED_VOLUME];
const PART_FIELDS = PARTS.flatMap((part) => [partField(part, "peak_bytes"), partField(part, "volume_bytes"), partField(part, "time_us")]);

/** Rows at step ends: exact values, and the exact peaks of the step. */
export const STEP_FIELDS = [
  ALLOCATED, ALLOCATED_PEAK, ACTIVE, ACTIVE_PEAK, RESERVED, RESERVED_PEAK, INACTIVE_SPLIT,
  DEVICE_USED, DEVICE_PROCESS, DEVICE_OTHER, DEVICE_ALLOCATIONS, RETRIES, STEP_DURATION,
  ...PEAK_FIELDS, ...PART_FIELDS, ...CATEGORY_FIELDS,
];

/** Samples over time: values at one instant. */
export const SAMPLE_FIELDS = [
  ALLOCATED, ACTIVE, RESERVED, INACTIVE_SPLIT, DEVICE_USED, DEVICE_PROCESS, DEVICE_OTHER, DEVICE_ALLOCATIONS, RETRIES, STEP, PHASE,
  DEVICE_TOTAL, DEVICE_FREE, RETURNABLE, STRANDED, PRIVATE_POOL,
];

/** What is told of a device beside the one that is watched in full. */
const FURTHER_FIELDS = [ALLOCATED, ALLOCATED_PEAK, ACTIVE, RESERVED, RESERVED_PEAK, DEVICE_USED, DEVICE_TOTAL, DEVICE_FREE];

/**
 * The names under which the samples of a device come: its own counters carry its number.
 * @param {number | null} device null for the one that is watched in full
 */
export function sampleFieldsOf(device) {
  return device === null ? SAMPLE_FIELDS : [...FURTHER_FIELDS.map((name) => `${name}@${device}`), STEP, PHASE];
}

/**
 * Columns of such samples under the plain names.
 * @template T
 * @param {Record<string, T>} columns
 * @param {number | null} device
 * @returns {Record<string, T>}
 */
export function plainColumns(columns, device) {
  const ending = `@${device}`;
  return device === null ? columns : Object.fromEntries(Object.entries(columns).map(([name, values]) => [name.endsWith(ending) ? name.slice(0, -ending.length) : name, values]));
}

/** What is followed of the ranks that are not shown in full. */
export const OVERVIEW_FIELDS = [RESERVED, DEVICE_USED, DEVICE_TOTAL, DEVICE_FREE];

/** What the page follows of the rank that it shows. */
export const LIVE_FIELDS = [...new Set([...STEP_FIELDS, ...SAMPLE_FIELDS])].filter((name) => name !== STEP);
