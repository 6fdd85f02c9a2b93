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
 * @returns {Limit}
 */
export function limitOf(rank, outside = null) {
  const device = currentDevice(rank);
  const total = rank?.device_total_bytes ?? device?.total_bytes ?? null;
  const cap = device?.limit_bytes ?? null;
  const beside = outside ?? 0;
  if (known(cap) && (!known(total) || cap + beside < total)) {
    const parts = [beside > 0 ? `limit: ${sizeText(cap)} for PyTorch, ${sizeText(beside)} beside it` : "limit of the process", known(total) && `device ${sizeText(total)}`];
    return { bytes: cap + beside, label: parts.filter(Boolean).join("; "), dashed: true };
  }
  return { bytes: total, label: device?.emulated ? "emulated device" : "device", dashed: false };
}

/** @param {Rank | null | undefined} rank */
function currentDevice(rank) {
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
 */
export function deviceText(rank) {
  const device = currentDevice(rank);
  return [...new Set([`rank ${rank.rank}`, device && deviceName(device), rank.device_name ?? device?.name])].filter(Boolean).join(" · ");
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
