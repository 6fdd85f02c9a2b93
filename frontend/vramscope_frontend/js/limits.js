// What bounds the memory of a rank, and how its device is called. Pure.

import { known, sizeText } from "./format.js";

/** @typedef {import("./messages.js").Rank} Rank */
/** @typedef {import("./messages.js").Run} Run */
/** @typedef {{bytes: number | null, label: string, dashed: boolean}} Limit */

/**
 * The lower of the device and the process's own cap. The cap is on what PyTorch reserves: what lies
 * beside that on the device comes on top of it.
 * @param {Rank | null | undefined} rank
 * @param {number | null} [outside] bytes in use outside of PyTorch's segments, if they are known
 * @param {number | null} [index] of a device beside the one that is watched in full
 * @returns {Limit}
 */
export function limitOf(rank, outside = null, index = null) {
  const device = index === null ? currentDevice(rank) : deviceOf(rank, index);
  const total = (index === null ? rank?.device_total_bytes : null) ?? device?.total_bytes ?? null;
  const cap = device?.limit_bytes ?? null;
  const beside = outside ?? 0;
  if (known(cap) && (!known(total) || cap + beside < total)) {
    const parts = [beside > 0 ? `limit: ${sizeText(cap)} for PyTorch, ${sizeText(beside)} beside it` : "limit of the process", known(total) && `device ${sizeText(total)}`];
    return { bytes: cap + beside, label: parts.filter(Boolean).join("; "), dashed: true };
  }
  return { bytes: total, label: device?.emulated ? "emulated device" : "device", dashed: false };
}

/**
 * @param {Rank | null | undefined} rank
 * @param {number} index
 */
export function deviceOf(rank, index) {
  return rank?.devices?.find((one) => one.index === index) ?? null;
}

/** @param {Rank | null | undefined} rank */
export function currentDevice(rank) {
  return rank?.devices?.find((one) => one.uuid !== undefined && one.uuid === rank.device_uuid) ?? rank?.devices?.[0] ?? null;
}

/**
 * "cuda:0"; a device of which nothing is known may not be there at all.
 * @param {import("./messages.js").DeviceInfo} device
 */
export function deviceName(device) {
  if (device.emulated) return "emulated";
  return device.name || device.uuid || known(device.total_bytes) ? `${device.backend || "cuda"}:${device.index}` : "no GPU seen";
}

/**
 * "rank 0 · cuda:0 · NVIDIA H200".
 * @param {Rank} rank
 * @param {number | null} [index] of a device beside the one that is watched in full
 */
export function deviceText(rank, index = null) {
  const device = index === null ? currentDevice(rank) : deviceOf(rank, index);
  return [...new Set([`rank ${rank.rank}`, device && deviceName(device), (index === null ? rank.device_name : null) ?? device?.name])].filter(Boolean).join(" · ");
}

/**
 * "64 × H100", the way a list of runs names its devices.
 * @param {Run} run
 */
export function devicesText(run) {
  if (run.emulated) return "emulated";
  const name = (run.device_name ?? "not known").replace(/^NVIDIA (GeForce )?/, "").replace(/-(SXM|PCIE).*$/i, "");
  return run.world_size > 1 ? `${run.world_size} × ${name}` : name;
}
