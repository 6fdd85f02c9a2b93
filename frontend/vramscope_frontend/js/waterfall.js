// The account of a device: what every byte of it belongs to, from counters, from what tensors belong
// to and from the driver. The same rules as vramscope_analysis/waterfall.py, held to them by the
// vectors of tests/data/waterfall. What is not known is null, its bytes are in a part of their own,
// and parts add up to their whole exactly. Pure.

/**
 * What is known; null where nothing is.
 * @typedef {object} Reading
 * @property {number | null} total of the device, by the driver
 * @property {number | null} used
 * @property {number | null} free
 * @property {number | null} process
 * @property {number | null} other
 * @property {number | null} sample_reserved reserved when the driver was asked
 * @property {number | null} reserved
 * @property {number | null} active
 * @property {number | null} allocated
 * @property {number | null} peak_reserved highest values of a step, each for itself
 * @property {number | null} peak_active
 * @property {number | null} peak_allocated
 * @property {number | null} peak_part in which allocated was highest: 1 forward, 2 backward, 3 optimizer
 * @property {number | null} parameters
 * @property {number | null} gradients
 * @property {number | null} optimizer_state
 * @property {number | null} buffers
 * @property {number | null} gradients_kept gradients that were alive when the backward began
 * @property {number | null} optimizer_state_before at the end of the step before
 * @property {number | null} returnable
 * @property {number | null} stranded
 * @property {number | null} private_pool
 */

/**
 * @typedef {"device" | "other_processes" | "outside" | "driver" | "unknown" | "free" | "reserved" | "allocated" | "pending_free" | "returnable" | "stranded" | "private_pool" | "cache_not_split" | "parameters" | "optimizer_state" | "buffers" | "gradients" | "activations" | "not_split"} Part
 * @typedef {Record<Part, number | null>} Account
 * @typedef {"instant" | "end" | "peak"} Moment
 */

const FORWARD = 1;
const OPTIMIZER = 3;

/** What is left of a whole while parts are taken from it. */
class Whole {
  /** @param {number} bytes */
  constructor(bytes) {
    this.left = bytes;
  }

  /**
   * At most what is left; null stays null.
   * @param {number | null} bytes
   */
  take(bytes) {
    if (bytes === null) return null;
    const taken = Math.min(Math.max(0, bytes), this.left);
    this.left -= taken;
    return taken;
  }
}

/**
 * @param {number | null} a
 * @param {number | null} b
 */
const less = (a, b) => (a === null || b === null ? null : a - b);

/**
 * @param {Reading} reading
 * @param {Moment} moment any time, the end of a step, or the highest of allocated memory within one
 * @returns {Account}
 */
export function account(reading, moment) {
  const atPeak = moment === "peak";
  const reserved = atPeak ? reading.peak_reserved : reading.reserved;
  const active = atPeak ? reading.peak_active : reading.active;
  const allocated = atPeak ? reading.peak_allocated : reading.allocated;
  const device = ofDevice(reading, reserved);
  const segments = ofReserved(reading, atPeak, device.reserved, allocated, less(active, allocated));
  return { ...device, ...segments, ...ofAllocated(reading, moment, segments.allocated) };
}

/**
 * A part of what is used: the driver's two answers are never of quite the same moment.
 *
 * @param {number | null} size
 * @param {number | null} used
 * @param {number | null} before
 */
const within = (size, used, before) => (size === null || used === null || before === null ? size : Math.max(0, Math.min(size, used - before)));

/**
 * @param {Reading} reading
 * @param {number | null} held by PyTorch at the moment
 */
function ofDevice(reading, held) {
  const { total, used, free, process, other, sample_reserved } = reading;
  const size = total ?? used ?? held;
  if (size === null) return { device: null, reserved: null, outside: null, other_processes: null, driver: null, unknown: null, free: null };
  const device = new Whole(Math.max(0, size));
  const reserved = device.take(held);
  const outside = device.take(within(less(process, sample_reserved), used, sample_reserved));
  const other_processes = device.take(within(other, used, process));
  const parts = { device: Math.max(0, size), reserved, outside, other_processes };
  if (total === null) return { ...parts, driver: null, unknown: device.left, free: null };
  const driver = device.take(less(less(total, used), free));
  // The driver's numbers are of an instant at which PyTorch held something else.
  if (held === null && sample_reserved !== null) return { ...parts, driver, unknown: device.left, free: null };
  if (used !== null && sample_reserved !== null) {
    // From one sample; the counters may be of another instant, which only moves what is free.
    const unknown = device.take(used - (sample_reserved + (outside ?? 0) + (other_processes ?? 0)));
    return { ...parts, driver, unknown, free: device.left };
  }
  return { ...parts, driver, free: device.take(free), unknown: device.left };
}

/**
 * @param {Reading} reading
 * @param {boolean} atPeak
 * @param {number | null} reserved
 * @param {number | null} allocated
 * @param {number | null} pending
 */
function ofReserved(reading, atPeak, reserved, allocated, pending) {
  if (reserved === null) return { allocated: null, pending_free: null, stranded: null, private_pool: null, returnable: null, cache_not_split: null };
  const segments = new Whole(reserved);
  return {
    allocated: segments.take(allocated),
    pending_free: segments.take(pending),
    // The last look at the cache was not at the peak.
    stranded: atPeak ? null : segments.take(reading.stranded),
    private_pool: atPeak ? null : segments.take(reading.private_pool),
    returnable: atPeak ? null : segments.take(reading.returnable),
    cache_not_split: segments.left,
  };
}

/**
 * @param {Reading} reading
 * @param {Moment} moment
 * @param {number | null} allocated
 */
function ofAllocated(reading, moment, allocated) {
  if (allocated === null) return { parameters: null, buffers: null, optimizer_state: null, gradients: null, activations: null, not_split: null };
  const tensors = new Whole(allocated);
  const state = stateOf(reading, moment);
  const gradients = gradientsOf(reading, moment);
  const parts = {
    parameters: tensors.take(reading.parameters),
    buffers: tensors.take(reading.buffers),
    optimizer_state: tensors.take(state.sure),
    gradients: tensors.take(gradients.sure),
  };
  if (Object.values(parts).some((part) => part === null)) return { ...parts, activations: null, not_split: tensors.left };
  const not_split = tensors.take(state.maybe + gradients.maybe);
  return { ...parts, not_split, activations: tensors.left };
}

/**
 * How much there was for sure, and how much more there may have been.
 * @typedef {{sure: number | null, maybe: number}} Known
 */

/**
 * @param {Reading} reading
 * @param {Moment} moment
 * @returns {Known}
 */
function stateOf({ optimizer_state: after, optimizer_state_before, peak_part }, moment) {
  if (after === null || moment !== "peak" || peak_part === OPTIMIZER) return { sure: after, maybe: 0 };
  const sure = Math.min(optimizer_state_before ?? 0, after);
  return { sure, maybe: after - sure };
}

/**
 * @param {Reading} reading
 * @param {Moment} moment
 * @returns {Known}
 */
function gradientsOf({ gradients: end, gradients_kept: kept, peak_part }, moment) {
  const atPeak = moment === "peak";
  if (end === null || moment === "end" || (atPeak && peak_part === OPTIMIZER)) return { sure: end, maybe: 0 };
  if (atPeak && peak_part === FORWARD && kept !== null) return { sure: kept, maybe: 0 };
  const sure = Math.min(kept ?? 0, end);
  return { sure, maybe: end - sure };
}
