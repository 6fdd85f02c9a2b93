import assert from "node:assert/strict";
import test from "node:test";
import { deviceName, deviceText } from "../vramscope_frontend/js/limits.js";

/** @returns {any} */
const rank = (/** @type {any} */ device) => ({ rank: 0, devices: [device], device_uuid: null, device_name: null, device_total_bytes: null });

test("a job without a GPU is not said to have one", () => {
  assert.equal(deviceText(rank({ index: 0, name: "" })), "rank 0 · no GPU seen");
  assert.equal(deviceText(rank({ index: 1, name: "NVIDIA H200", total_bytes: 1 })), "rank 0 · cuda:1 · NVIDIA H200");
  assert.equal(deviceName({ index: 0, name: "emulated", emulated: true }), "emulated");
  assert.equal(deviceName({ index: 0, name: "", uuid: "GPU-1" }), "cuda:0");
});
