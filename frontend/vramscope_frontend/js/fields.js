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
export const DEVICE_ALLOCATIONS = "num_device_alloc";
export const RETRIES = "num_alloc_retries";
export const STEP_DURATION = "step.duration_us";
export const STEP = "step";
export const PHASE = "phase";

/** Rows at step ends: exact values, and the exact peaks of the step. */
export const STEP_FIELDS = [
  ALLOCATED, ALLOCATED_PEAK, ACTIVE, ACTIVE_PEAK, RESERVED, RESERVED_PEAK, INACTIVE_SPLIT,
  DEVICE_USED, DEVICE_PROCESS, DEVICE_OTHER, DEVICE_ALLOCATIONS, RETRIES, STEP_DURATION,
];

/** Samples over time: values at one instant. */
export const SAMPLE_FIELDS = [
  ALLOCATED, ACTIVE, RESERVED, INACTIVE_SPLIT, DEVICE_USED, DEVICE_PROCESS, DEVICE_OTHER, DEVICE_ALLOCATIONS, RETRIES, STEP, PHASE,
];

/** What is followed of the ranks that are not shown in full. */
export const OVERVIEW_FIELDS = [RESERVED, DEVICE_USED];

/** What the page follows of the rank that it shows. */
export const LIVE_FIELDS = [...new Set([...STEP_FIELDS, ...SAMPLE_FIELDS])].filter((name) => name !== STEP);
