import assert from "node:assert/strict";
import test from "node:test";
import { verdictOverRuns } from "../vramscope_frontend/js/runs-verdict.js";

const GIB = 2 ** 30;
/** @returns {any} */
const row = (/** @type {string} */ name, /** @type {number} */ free, state = "live", finding = null) => ({ run: { id: name, name, finding }, state, free: free * GIB, limit: 100 * GIB, silent_s: 0 });
/** @returns {any} */
const finding = (/** @type {string} */ severity, /** @type {number | null} */ early_s = null) => ({ id: severity, kind: "leak", severity, stage: "confirmed", summary: "Leaking 3.1 MiB per step at train.py:56.", forecast: early_s === null ? null : { early_s, late_s: 1.3 * early_s, confidence: 0.9 } });

test("the sentence over all runs starts with the most urgent", () => {
  assert.match(verdictOverRuns([row("a", 1), row("b", 30)]).sentence, /^a is tight: 1\.0 GiB/);
  assert.match(verdictOverRuns([row("a", 20), row("b", 30)]).sentence, /^2 runs live; the least head-room is 20\.0 GiB, in a\.$/);
  assert.match(verdictOverRuns([row("a", 20, "stale")]).second, /not known/);
  assert.equal(verdictOverRuns([row("a", 20, "ended")]).sentence, "No run is live.");
});

test("runs that fill up come before those that are tight, the soonest first", () => {
  const verdict = verdictOverRuns([row("slow", 30, "live", finding("critical", 1560)), row("soon", 1, "live", finding("critical", 420)), row("warned", 30, "live", finding("warning"))]);
  assert.equal(verdict.sentence, "2 of 3 live runs will run out of memory: soon in 7 to 10 min, slow in 26 to 34 min.");
  assert.equal(verdict.second, "1 more run has a warning.");
  assert.equal(verdict.severity, "crit");
});

test("one critical run speaks for itself, and without a forecast nothing is foretold", () => {
  assert.equal(verdictOverRuns([row("a", 30, "live", finding("critical")), row("b", 30)]).sentence, "a: Leaking 3.1 MiB per step at train.py:56.");
  assert.equal(verdictOverRuns([row("a", 30, "live", finding("critical")), row("b", 30, "live", finding("critical", 60))]).sentence, "2 of 2 live runs need you: b, a.");
  assert.equal(verdictOverRuns([row("a", 30, "ended", finding("critical"))]).sentence, "No run is live.");
});
