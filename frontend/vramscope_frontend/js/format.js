// Numbers become text here and nowhere else. Sizes are powers of two; unknown is an en dash.

export const KIB = 1024;
export const MIB = 1024 ** 2;
export const GIB = 1024 ** 3;
export const UNKNOWN = "–";
const THIN = "\u2009";
const MINUS = "\u2212";

/** @typedef {{value: string, unit: string}} Quantity */
/** @typedef {number | null | undefined} Maybe */

/**
 * True for a number that is known.
 * @param {Maybe} value
 * @returns {value is number}
 */
export function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/**
 * @param {number} value
 * @param {number} digits
 */
function fixed(value, digits) {
  const text = Math.abs(value).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  const isZero = !/[1-9]/.test(text);
  return value < 0 && !isZero ? MINUS + text : text;
}

/**
 * Steps, samples, ranks: thousands comma.
 * @param {Maybe} value
 */
export function count(value) {
  return known(value) ? fixed(value, 0) : UNKNOWN;
}

/**
 * A cell of a table whose header says GiB.
 * @param {Maybe} bytes
 * @param {number} [digits]
 */
export function gib(bytes, digits = 1) {
  return known(bytes) ? fixed(bytes / GIB, digits) : UNKNOWN;
}

/** Below this a table in GiB would be a column of 0.1 and 0.2. */
const TABLE_IN_MIB_BELOW = 4 * GIB;

/**
 * The unit in which one table of sizes is written: the largest value decides for all of them.
 * @param {Maybe} largest_bytes
 * @returns {{name: "GiB" | "MiB", bytes: number}}
 */
export function tableUnit(largest_bytes) {
  return known(largest_bytes) && largest_bytes < TABLE_IN_MIB_BELOW ? { name: "MiB", bytes: MIB } : { name: "GiB", bytes: GIB };
}

/**
 * A size in a given unit, one decimal.
 * @param {Maybe} bytes
 * @param {{bytes: number}} unit
 */
export function inUnit(bytes, unit) {
  return known(bytes) ? fixed(bytes / unit.bytes, 1) : UNKNOWN;
}

/**
 * A difference in a given unit, with its sign.
 * @param {Maybe} bytes
 * @param {{bytes: number}} unit
 */
export function changeInUnit(bytes, unit) {
  if (!known(bytes)) return UNKNOWN;
  const text = fixed(bytes / unit.bytes, 1);
  return bytes > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

/**
 * One size with the unit that suits it.
 * @param {Maybe} bytes
 * @param {number} [digits] decimals of GiB
 * @returns {Quantity}
 */
export function size(bytes, digits = 1) {
  if (!known(bytes)) return { value: UNKNOWN, unit: "" };
  const magnitude = Math.abs(bytes);
  if (magnitude >= GIB) return { value: fixed(bytes / GIB, digits), unit: "GiB" };
  if (magnitude >= MIB) return { value: fixed(bytes / MIB, magnitude >= 100 * MIB ? 0 : 1), unit: "MiB" };
  if (magnitude >= KIB) return { value: fixed(bytes / KIB, 0), unit: "KiB" };
  return { value: fixed(bytes, 0), unit: "bytes" };
}

/**
 * @param {Maybe} bytes
 * @param {number} [digits]
 */
export function sizeText(bytes, digits = 1) {
  const { value, unit } = size(bytes, digits);
  return unit ? `${value} ${unit}` : value;
}

/**
 * "113.6 of 139.8 GiB": one unit for both.
 * @param {Maybe} part_bytes
 * @param {Maybe} whole_bytes
 */
export function ofText(part_bytes, whole_bytes) {
  if (!known(part_bytes) || !known(whole_bytes)) return sizeText(part_bytes);
  const unit = tableUnit(whole_bytes);
  const digits = unit.bytes === GIB ? 1 : 0;
  return `${fixed(part_bytes / unit.bytes, digits)} of ${fixed(whole_bytes / unit.bytes, digits)} ${unit.name}`;
}

/**
 * @param {Maybe} bytes
 */
export function exactBytes(bytes) {
  return known(bytes) ? `${fixed(Math.round(bytes), 0)} bytes` : "not known";
}

/**
 * Share of one: integer percent, one decimal below 10.
 * @param {Maybe} fraction
 */
export function percent(fraction) {
  if (!known(fraction)) return UNKNOWN;
  const value = fraction * 100;
  return `${fixed(value, Math.abs(value) < 9.95 ? 1 : 0)}${THIN}%`;
}

/**
 * Growth in MiB per step, with its sign.
 * @param {Maybe} bytes_per_step
 */
export function mibPerStep(bytes_per_step) {
  if (!known(bytes_per_step)) return UNKNOWN;
  const text = fixed(bytes_per_step / MIB, 1);
  return bytes_per_step > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

/**
 * @param {Maybe} seconds
 * @returns {Quantity}
 */
export function durationParts(seconds) {
  if (!known(seconds)) return { value: UNKNOWN, unit: "" };
  if (seconds < 0.01) return { value: fixed(seconds * 1000, 1), unit: "ms" };
  if (seconds < 0.9995) return { value: fixed(seconds * 1000, 0), unit: "ms" };
  if (seconds < 99) return { value: fixed(seconds, 1), unit: "s" };
  return { value: duration(seconds), unit: "" };
}

/**
 * ms to 999, s with one decimal to 99, then min, h min, d h.
 * @param {Maybe} seconds
 */
export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 99) {
    const { value, unit } = durationParts(seconds);
    return `${value} ${unit}`;
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${String(hours % 24).padStart(2, "0")} h`;
}

/**
 * How long ago, in whole units: what a clock that ticks once a second can say.
 * @param {Maybe} seconds
 */
export function age(seconds) {
  if (!known(seconds)) return UNKNOWN;
  return seconds < 99 ? `${Math.max(0, Math.floor(seconds))} s` : duration(seconds);
}

/**
 * @param {Maybe} time_ns
 * @returns {Date | null}
 */
function dateOf(time_ns) {
  return known(time_ns) ? new Date(time_ns / 1e6) : null;
}

/**
 * Local time of day, 24 h.
 * @param {Maybe} time_ns
 */
export function clock(time_ns) {
  const date = dateOf(time_ns);
  return date ? date.toLocaleTimeString("en-GB", { hour12: false }) : UNKNOWN;
}

/**
 * @param {Maybe} time_ns
 */
export function clockWithUtc(time_ns) {
  const date = dateOf(time_ns);
  if (!date) return UNKNOWN;
  return `${date.toLocaleString("en-GB", { hour12: false })} (${date.toISOString().slice(11, 19)} UTC)`;
}

/**
 * "today 13:24", "yesterday 16:20", "Thu 09:58", "12 Nov 09:58".
 * @param {Maybe} time_ns
 * @param {number} now_ns
 */
export function day(time_ns, now_ns) {
  const date = dateOf(time_ns);
  if (!date) return UNKNOWN;
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", hour12: false });
  const midnight = new Date(now_ns / 1e6);
  midnight.setHours(0, 0, 0, 0);
  const days_ago = Math.ceil((midnight.getTime() - date.getTime()) / 86_400_000);
  if (days_ago <= 0) return `today ${time}`;
  if (days_ago === 1) return `yesterday ${time}`;
  if (days_ago < 7) return `${date.toLocaleDateString("en-GB", { weekday: "short" })} ${time}`;
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

/**
 * @param {number} amount
 * @param {string} one
 * @param {string} [many]
 */
export function plural(amount, one, many = `${one}s`) {
  return `${count(amount)} ${amount === 1 ? one : many}`;
}

/**
 * "rank 0", "ranks 0 and 3", "all 64 ranks".
 * @param {number[]} ranks
 * @param {number} world_size
 */
export function ranksText(ranks, world_size) {
  if (ranks.length === 1) return `rank ${ranks[0]}`;
  if (ranks.length === world_size) return `all ${world_size} ranks`;
  if (ranks.length > 6) return `${ranks.length} ranks`;
  return `ranks ${ranks.slice(0, -1).join(", ")} and ${ranks[ranks.length - 1]}`;
}
