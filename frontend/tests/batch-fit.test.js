import assert from "node:assert/strict";
import test from "node:test";
import { choices, facts, headline, isProbing, probeText } from "../vramscope_frontend/js/batch-fit.js";

const GIB = 2 ** 30;

/**
 * @param {Partial<import("../vramscope_frontend/js/batch-fit.js").BatchAdvice>} changes
 * @returns {import("../vramscope_frontend/js/batch-fit.js").BatchAdvice}
 */
function advice(changes = {}) {
  return { sentence: "", batch_size: 48, low: 46, high: 50, confidence: "high", current: 16, accumulation: 1, gain: 32, world_size: 1, peak_bytes: 37.5 * GIB, limit_bytes: 40 * GIB, allowed_bytes: 38 * GIB, is_replayed: true, basis: [], open_question: "", keeping: null, params: { batch_size: 48, change_global_batch: true }, deciding_rank: 0, ...changes };
}

test("the number comes with its range; without an upper end it is at least that", () => {
  assert.deepEqual(headline(advice()), { number: "48", range: "range 46 to 50", confidence: "sure" });
  assert.equal(headline(advice({ high: null, confidence: "low" })).range, "at least 46");
  assert.equal(headline(advice({ low: 48, high: 48 })).range, "");
});

test("what it is now, what is gained, and what the peak will be", () => {
  assert.deepEqual(facts(advice()), [["Now", "16"], ["Samples at a time", "+32"], ["Peak at that size", "at most 37.5 GiB of 40.0 GiB"]]);
  assert.deepEqual(facts(advice({ current: 64, accumulation: 2, gain: -64, world_size: 4 })).slice(0, 2), [["Now", "64 × 2 passes"], ["Samples at a time", "−64 on 4 ranks"]]);
  assert.equal(facts(advice({ current: null, gain: null })).length, 1);
});

test("one click sets it; a size that keeps the global batch comes first", () => {
  assert.deepEqual(choices(advice()).map(({ label, params }) => [label, params]), [["Set 48…", { batch_size: 48, change_global_batch: true }]]);
  const both = choices(advice({ accumulation: 6, keeping: { batch_size: 32, accumulation: 3 } }));
  assert.deepEqual(both.map(({ label }) => label), ["Set 32 × 3…", "Set 48…"]);
  assert.deepEqual(both[0].params, { batch_size: 32, accumulation: 3 });
  assert.match(both[0].note, /as many samples a step as now/);
  assert.deepEqual(choices(advice({ current: 48 })), []);
});

test("how far a probe is", () => {
  const probe = (/** @type {any} */ state, text = "") => ({ id: "p", state, text, batch_size: 24, back: 16 });
  assert.equal(probeText(probe("watching")), "Probing: watching steps with 24 samples…");
  assert.equal(probeText(probe("going_back")), "Probing: going back to 16 samples…");
  assert.equal(probeText(probe("failed", "It was refused.")), "The probe failed: It was refused.");
  assert.equal(probeText(null), "");
  assert.deepEqual([isProbing(probe("changing")), isProbing(probe("done")), isProbing(probe("failed")), isProbing(null)], [true, false, false, false]);
});
