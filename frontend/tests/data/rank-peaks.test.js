import assert from "node:assert/strict";
import test from "node:test";
import { peakOfRank } from "../../vramscope_frontend/js/data/rank-peaks.js";

const MIB = 2 ** 20;
const bins = (/** @type {number} */ mib) => ({ min: [mib * MIB], mean: [mib * MIB], max: [mib * MIB] });
const inMib = (/** @type {(number | null)[]} */ values) => values.map((bytes) => (bytes === null ? null : bytes / MIB));
/** @type {any} */
const samples = { resolution_ms: 60_000, time_ns: [1e9], rank: 0, columns: { "reserved_bytes.all.current": bins(100), "device.used_bytes": bins(130), "device.process_bytes": bins(120), "device.other_bytes": bins(10), "device.total_bytes": bins(200), "device.free_bytes": bins(65) } };
const steps = (/** @type {Record<string, number[]>} */ mib) => ({ step: [500, 900], time_ns: [2e9, 3e9], columns: Object.fromEntries(Object.entries(mib).map(([name, values]) => [name, name.endsWith("part") ? values : values.map((value) => value * MIB)])) });
const current = { "allocated_bytes.all.current": [50, 50], "active_bytes.all.current": [50, 50], "reserved_bytes.all.current": [100, 100] };

test("the highest step of a rank with its categories and what lies outside of PyTorch", () => {
  const peak = peakOfRank(steps({ ...current, "step.peak_allocated_bytes": [80, 95], "step.peak_active_bytes": [80, 95], "step.peak_reserved_bytes": [100, 110], "step.peak_part": [3, 3], "category.parameters_bytes": [20, 20], "category.gradients_bytes": [10, 10], "category.gradients_kept_bytes": [0, 0], "category.optimizer_state_bytes": [20, 20], "category.buffers_bytes": [0, 0] }), samples, 0);
  assert.equal(peak?.step, 900);
  const { layers } = peak.state;
  assert.deepEqual(inMib([layers.parameters, layers.gradients, layers.optimizer, layers.activations, layers.inside, layers.context, layers.other, layers.driver]), [20, 10, 20, 45, 15, 20, 10, 5]);
});

test("without exact peaks those since the last reset stand for them, undivided", () => {
  const peak = peakOfRank(steps({ ...current, "allocated_bytes.all.peak": [70, 90], "active_bytes.all.peak": [70, 90], "reserved_bytes.all.peak": [100, 100] }), samples, 0);
  assert.equal(peak?.step, 900);
  assert.deepEqual(inMib([peak.state.layers.held, peak.state.layers.within, peak.state.layers.parameters]), [50, 40, null]);
});

test("a rank without steps has no highest one", () => {
  assert.equal(peakOfRank({ step: [], time_ns: [], columns: {} }, samples, 0), null);
});
