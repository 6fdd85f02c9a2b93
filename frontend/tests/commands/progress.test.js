import assert from "node:assert/strict";
import test from "node:test";
import { progressOf } from "../../vramscope_frontend/js/commands/progress.js";

/**
 * @param {string[]} states by rank
 * @returns {any}
 */
const command = (states) => ({ name: "empty_cache", ranks: states.map((_, rank) => rank), state: "queued", receipts: Object.fromEntries(states.flatMap((state, rank) => (state === "queued" ? [] : [[rank, { state, step: state === "done" ? 41 : null }]]))) });
const many = (/** @type {number} */ prepared, /** @type {number} */ queued) => command([...Array(prepared).fill("prepared"), ...Array(queued).fill("queued")]);

test("ranks that are ready are counted, and the few that are not are named", () => {
  const progress = progressOf(many(61, 3), 64);
  assert.equal(progress.text, "prepared 61 of 64");
  assert.equal(progress.waiting, "waiting for ranks 61, 62 and 63");
  assert.equal(progressOf(many(20, 44), 64).waiting, "");
});

test("each state has its words", () => {
  assert.equal(progressOf(many(0, 8), 8).text, "queued on 8");
  assert.match(progressOf(many(8, 0), 8).text, /^prepared on all 8, for the end of one step$/);
  assert.equal(progressOf({ ...many(8, 0), agreement: { at_step: 4812 } }, 8).text, "prepared on all 8, for the end of step 4,812");
  assert.equal(progressOf(command(["running", "running", "prepared"]), 3).text, "running on 2 of 3");
  assert.equal(progressOf(command(["done", "running"]), 2).text, "done on 1 of 2");
  assert.equal(progressOf(command(["done", "refused"]), 2).text, "done on 1 of 2, not on 1");
  assert.equal(progressOf(command(["queued"]), 1).text, "queued");
});

test("the bar never goes back while ranks go on", () => {
  const shares = [many(0, 4), many(2, 2), many(4, 0), command(["running", "running", "running", "running"]), command(["done", "done", "done", "done"])].map((one) => progressOf(one, 4).share);
  assert.deepEqual(shares, [...shares].sort((a, b) => a - b));
  assert.deepEqual([shares[0], shares.at(-1)], [0, 1]);
});
