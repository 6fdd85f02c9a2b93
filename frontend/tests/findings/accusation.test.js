import assert from "node:assert/strict";
import test from "node:test";
import { accuse, floorAtOnset, floorBefore } from "../../vramscope_frontend/js/findings/accusation.js";
import { compose } from "../../vramscope_frontend/js/composition.js";

/** Allocated at step ends: 100 until step 10, then one more each step. */
const floors = Array.from({ length: 40 }, (_, i) => 100 + Math.max(0, i - 10));
const steps = { x: floors.map((_, i) => i), t: floors.map((_, i) => i), columns: { "allocated_bytes.all.current": floors }, binWidth: 0 };
/** @type {any} */
const evidence = { layer: "grown", onset_t: 10 };
/** @type {any} */
const counters = { allocated: 160, active: 160, reserved: 200, inactiveSplit: null, used: null, process: null, other: null, heldAtEnd: 130, categories: { part: 2, parameters: 60, gradients: 0, gradientsKept: 0, optimizerState: 20, optimizerBefore: 20, buffers: 0 } };

test("what grew is what steps hand on beyond what they did when it began", () => {
  const onset_bytes = floorAtOnset(steps, 10);
  assert.equal(onset_bytes, 102);
  const state = accuse(compose(counters, 300), { evidence, onset_bytes }, 130, 30);
  assert.deepEqual([state.layers.grown, state.layers.activations], [28, 52]);
  assert.equal(state.allocated, 160);
});

test("before the onset, without a floor or without an accusation the state stays as it is", () => {
  const state = compose(counters, 300);
  assert.equal(accuse(state, { evidence, onset_bytes: 102 }, 130, 9), state);
  assert.equal(accuse(state, { evidence, onset_bytes: null }, 130, 30), state);
  assert.equal(accuse(state, { evidence, onset_bytes: 102 }, null, 30), state);
  assert.equal(accuse(state, { evidence: { ...evidence, layer: "other" }, onset_bytes: 102 }, 130, 30), state);
});

test("no more is accused than there is", () => {
  const state = accuse(compose(counters, 300), { evidence, onset_bytes: 0 }, 1000, 30);
  assert.deepEqual([state.layers.grown, state.layers.activations], [80, 0]);
});

test("within a step the floor is that of the step before", () => {
  assert.deepEqual([floorBefore(steps, 20.5), floorBefore(steps, 0)], [110, null]);
});
