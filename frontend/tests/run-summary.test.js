import assert from "node:assert/strict";
import test from "node:test";
import { summarize } from "../vramscope_frontend/js/run-summary.js";

/** @returns {any} */
const rank = (/** @type {number} */ number, /** @type {(number | null)[]} */ firsts) => ({ rank: number, devices: [], status: null, device_total_bytes: 2 ** 30, lives: firsts.map((first_step, life) => ({ life, first_step })) });
/** @returns {any} */
const run = (/** @type {any[]} */ ranks) => ({ world_size: ranks.length, ranks, device_total_bytes: 2 ** 30 });

test("of all ranks together the steps count from the newest process that was seen", () => {
  assert.equal(summarize(run([rank(0, [1]), rank(1, [1, 40])]), null, null, null).firstStep, 40);
  assert.equal(summarize(run([rank(0, [1]), rank(1, [null])]), null, null, null).firstStep, null, "as long as one is not known nothing is");
  assert.equal(summarize(run([rank(0, [1])]), 0, null, null).firstStep, null, "of one rank its own rows tell");
});
