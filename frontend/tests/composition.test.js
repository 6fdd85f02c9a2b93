import assert from "node:assert/strict";
import test from "node:test";
import { compose, countersAt, isNamed, LAYERS } from "../vramscope_frontend/js/composition.js";
import * as fields from "../vramscope_frontend/js/fields.js";

const row = {
  [fields.ALLOCATED]: 90, [fields.ACTIVE]: 91, [fields.RESERVED]: 112, [fields.INACTIVE_SPLIT]: 1, [fields.DEVICE_USED]: 116, [fields.DEVICE_PROCESS]: 114, [fields.DEVICE_OTHER]: 1,
};
const sum = (/** @type {ReturnType<typeof compose>} */ state) => LAYERS.reduce((total, { id }) => total + (state.layers[id] ?? 0), 0);

test("every byte has a name exactly once: layers and free add up to the device", () => {
  const state = compose(countersAt(row, true, 90), 140);
  const known = Object.fromEntries(Object.entries(state.layers).filter(([, bytes]) => bytes !== null));
  assert.deepEqual(known, { tensors: 0, held: 90, within: 0, pending: 1, stranded: 1, inside: 0, cached: 20, context: 2, driver: 0, unknown: 1, other: 1 });
  assert.equal(sum(state) + (state.free ?? 0), 140);
});

test("where the split is not known the free part inside segments is one sum, not a guess", () => {
  const state = compose(countersAt({ ...row, [fields.ALLOCATED]: 108, [fields.ACTIVE]: 109, [fields.RESERVED]: 114, [fields.INACTIVE_SPLIT]: 1 }, false, 90), 140);
  assert.equal(state.layers.held, 90);
  assert.equal(state.layers.within, 18);
  assert.equal(state.layers.inside, 5);
  assert.equal(state.layers.cached, null);
  assert.equal(state.layers.stranded, null);
  assert.equal(sum(state) + (state.free ?? 0), 140);
});

test("without the driver what lies outside of PyTorch is not known", () => {
  const state = compose(countersAt({ [fields.ALLOCATED]: 10, [fields.RESERVED]: 20 }, true, null), 40);
  assert.equal(state.layers.context, null);
  assert.equal(state.layers.other, null);
  assert.equal(state.layers.unknown, null);
  assert.equal(state.layers.tensors, 10);
  assert.equal(state.usedKnown, false);
  assert.equal(state.free, 20);
});

test("process memory not visible: the rest is named as not accounted for", () => {
  const state = compose({ allocated: 10, active: 10, reserved: 20, inactiveSplit: 0, used: 25, process: null, other: null, heldAtEnd: null }, 40);
  assert.equal(state.layers.unknown, 5);
  assert.equal(state.layers.context, null);
});

test("a driver that lags behind the allocator never makes a negative layer", () => {
  const state = compose({ allocated: 10, active: 10, reserved: 30, inactiveSplit: 50, used: 25, process: 24, other: 3, heldAtEnd: 12 }, 40);
  for (const { id } of LAYERS) assert.ok((state.layers[id] ?? 0) >= 0, id);
  assert.equal(state.used, 30);
  assert.equal(sum(state) + (state.free ?? 0), 40);
});

const categories = { part: 2, parameters: 20, gradients: 20, gradientsKept: 0, optimizerState: 40, optimizerBefore: 40, buffers: 1 };
const counters = { allocated: 90, active: 90, reserved: 112, inactiveSplit: null, used: 116, process: 114, other: 1, heldAtEnd: 81, total: 140, free: 23, categories };

test("with categories tensors are divided by them, and nothing is counted twice", () => {
  const state = compose({ ...counters, moment: "end" }, 140);
  assert.deepEqual([state.layers.parameters, state.layers.gradients, state.layers.optimizer, state.layers.buffers, state.layers.activations, state.layers.unsplit], [20, 20, 40, 1, 9, 0]);
  assert.deepEqual([state.layers.tensors, state.layers.held, state.layers.within], [null, null, null]);
  assert.equal(state.layers.driver, 1);
  assert.equal(sum(state) + (state.free ?? 0), 140);
});

test("at a peak in the backward gradients and activations are not told apart", () => {
  const state = compose({ ...counters, moment: "peak" }, 140);
  assert.deepEqual([state.layers.gradients, state.layers.unsplit, state.layers.activations], [0, 20, 9]);
  assert.equal(state.layers.inside, 22);
});

test("an old look at the segments is not mixed with the counters of another moment", () => {
  const MIB = 2 ** 20;
  const at = (/** @type {number | null} */ inactiveSplit, /** @type {number} */ rest) => compose({ allocated: 0, active: 0, reserved: rest * MIB, inactiveSplit: inactiveSplit === null ? null : inactiveSplit * MIB, used: null, process: null, other: null, heldAtEnd: null, cache: { returnable: MIB, stranded: 2 * MIB, privatePool: 0 } }, null).layers;
  assert.deepEqual([at(9, 3).stranded, at(9, 3).cached], [2 * MIB, MIB], "a look that adds up is used");
  assert.deepEqual([at(9, 100).stranded, at(9, 100).cached], [9 * MIB, 91 * MIB], "else the counter");
  assert.deepEqual([at(0, 100).stranded, at(0, 100).inside], [null, 100 * MIB], "expandable segments are not in the counter");
});

test("every byte is named only where nothing is left over", () => {
  const named = compose({ ...counters, moment: "end", inactiveSplit: 2 }, 140);
  assert.equal(isNamed(named), true);
  assert.equal(isNamed(compose({ ...counters, moment: "peak" }, 140)), false);
  assert.equal(isNamed(compose({ ...counters, moment: "end", inactiveSplit: 2, process: 90 }, 140)), false);
  assert.equal(isNamed(compose({ ...counters, moment: "end", inactiveSplit: 2, categories: undefined }, 140)), false);
});
