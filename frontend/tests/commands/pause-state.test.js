import assert from "node:assert/strict";
import test from "node:test";
import { pauseOf } from "../../vramscope_frontend/js/commands/pause-state.js";

const NOW = 1_800_000_000_000_000_000;
/** @type {any} */
const run = { state: "live" };
/** @returns {any} */
const pause = (/** @type {string} */ state, /** @type {any} */ changes = {}) => ({ name: "pause", dry_run: false, state, params: { max_s: 60 }, issued_by: "ada", created_ns: NOW - 11e9, receipts: { 0: { state, step: 41, time_ns: NOW - 10e9 } }, ...changes });
const resume = (/** @type {number} */ created_ns) => /** @type {any} */ ({ name: "resume", dry_run: false, state: "done", created_ns, params: {}, receipts: {} });

test("a pause that runs is one, until its time is over", () => {
  const found = pauseOf([pause("running")], run, NOW);
  assert.deepEqual([found?.step, found?.until_ns, found?.by], [41, NOW + 50e9, "ada"]);
  assert.equal(pauseOf([pause("running")], run, NOW + 70e9), null);
});

test("what only waits, has ended or was resumed is no pause", () => {
  assert.equal(pauseOf([pause("prepared")], run, NOW), null);
  assert.equal(pauseOf([pause("done")], run, NOW), null);
  assert.equal(pauseOf([pause("running"), resume(NOW - 1e9)], run, NOW), null);
  assert.notEqual(pauseOf([resume(NOW - 60e9), pause("running")], run, NOW), null);
  assert.equal(pauseOf([pause("running")], /** @type {any} */ ({ state: "ended" }), NOW), null);
});

test("ranks that still stand still count", () => {
  const mixed = pause("running", { receipts: { 0: { state: "done", step: 41, time_ns: NOW - 10e9 }, 1: { state: "running", step: 41, time_ns: NOW - 9e9 } } });
  assert.equal(pauseOf([mixed], run, NOW)?.step, 41);
});
