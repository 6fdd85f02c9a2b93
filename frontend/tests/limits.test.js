import assert from "node:assert/strict";
import test from "node:test";
import { deviceName, deviceText, limitOf } from "../vramscope_frontend/js/limits.js";

const GIB = 2 ** 30;
/** @returns {any} */
const rank = (/** @type {any} */ device) => ({ rank: 0, devices: [device], device_uuid: null, device_name: null, device_total_bytes: null });

test("a job without a GPU is not said to have one", () => {
  assert.equal(deviceText(rank({ index: 0, name: "" })), "rank 0 · no GPU seen");
  assert.equal(deviceText(rank({ index: 1, name: "NVIDIA H200", total_bytes: 1 })), "rank 0 · cuda:1 · NVIDIA H200");
  const two = { ...rank({ index: 0, name: "NVIDIA H200", total_bytes: 1, uuid: "a" }), device_name: "NVIDIA H200", device_total_bytes: 1 };
  two.devices.push({ index: 2, name: "NVIDIA L4", total_bytes: 24 * GIB });
  assert.equal(deviceText(two, 2), "rank 0 · cuda:2 · NVIDIA L4");
  assert.deepEqual(limitOf(two, null, 2), { bytes: 24 * GIB, label: "device", dashed: false });
  assert.equal(deviceName({ index: 0, name: "emulated", emulated: true }), "emulated");
  assert.equal(deviceName({ index: 0, name: "", uuid: "GPU-1" }), "cuda:0");
});

test("a cap on PyTorch leaves what lies beside it on the device on top", () => {
  const capped = rank({ index: 0, name: "H200", total_bytes: 140 * GIB, limit_bytes: 70 * GIB });
  assert.deepEqual(limitOf(capped, 10 * GIB), { bytes: 80 * GIB, label: "limit: 70.0 GiB for PyTorch, 10.0 GiB beside it; device 140.0 GiB", dashed: true });
  assert.deepEqual(limitOf(capped), { bytes: 70 * GIB, label: "limit of the process; device 140.0 GiB", dashed: true });
  assert.equal(limitOf(capped, 100 * GIB).bytes, 140 * GIB, "others may leave less than the cap");
});
