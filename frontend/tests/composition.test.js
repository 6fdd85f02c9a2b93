import assert from "node:assert/strict";
import test from "node:test";
import { compose, countersAt, LAYERS } from "../vramscope_frontend/js/composition.js";
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
