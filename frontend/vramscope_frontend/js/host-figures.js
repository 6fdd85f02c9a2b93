// The newest known host numbers of a rank, from an answer of the series API. Pure.

import { known, sizeText } from "./format.js";

/** @typedef {import("./messages.js").SeriesPayload} SeriesPayload */

/** What the panel asks for: host memory, its limit, workers, Python's garbage collector. */
export const HOST_FIELDS = [
  "host.rss_bytes", "host.swap_bytes", "host.threads", "host.pinned_bytes", "host.pinned_reserved_bytes", "host.locked_bytes", "host.shared_bytes",
  "host.workers", "host.workers_rss_bytes", "host.workers_shared_bytes", "host.shm_used_bytes", "host.shm_size_bytes", "host.limit_bytes", "host.limit_used_bytes",
  "gc.collections", "gc.full_collections", "gc.pause_us", "gc.full_pause_us", "agent.cpu_us",
];

/** Counters of one further device of a process carry its number. */
const DEVICE_FIELDS = ["allocated_bytes.all.current", "reserved_bytes.all.current", "device.used_bytes"];

/** @param {number} index of a further device */
export function deviceFields(index) {
  return DEVICE_FIELDS.map((name) => `${name}@${index}`);
}

/**
 * The last value of each column that is known.
 * @param {SeriesPayload} payload
 * @returns {Record<string, number | null>}
 */
export function newest(payload) {
  return Object.fromEntries(Object.entries(payload.columns).map(([name, bins]) => [name, bins.max.findLast((value) => known(value)) ?? null]));
}

/**
 * How far a counter rose from the first known value to the last.
 * @param {SeriesPayload} payload
 * @param {string} name
 */
export function risen(payload, name) {
  const bins = payload.columns[name];
  const first = bins?.min.find((value) => known(value));
  const last = bins?.max.findLast((value) => known(value));
  return known(first) && known(last) ? Math.max(0, last - first) : null;
}

/**
 * "3.1 of 16.0 GiB": what is used of what there is, or only the first where there is no limit.
 * @param {number | null | undefined} used
 * @param {number | null | undefined} whole
 */
export function usedOf(used, whole) {
  return known(whole) ? `${sizeText(used)} of ${sizeText(whole)}` : sizeText(used);
}

/**
 * Collections and the share of time they took, over the stretch that was asked for.
 * @param {SeriesPayload} payload
 */
export function garbageText(payload) {
  const collections = risen(payload, "gc.collections");
  const full = risen(payload, "gc.full_collections");
  const pause_us = risen(payload, "gc.pause_us");
  const times = payload.time_ns;
  const stretch_us = times.length > 1 ? (times[times.length - 1] - times[0]) / 1000 : 0;
  if (!known(collections) || !known(full) || !known(pause_us) || stretch_us <= 0) return "–";
  return `${collections} (${full} full), ${(100 * pause_us / stretch_us).toFixed(pause_us ? 2 : 0)} % of the time`;
}
