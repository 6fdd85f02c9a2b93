import assert from "node:assert/strict";
import test from "node:test";
import { withFindings } from "../../vramscope_frontend/js/findings/finding-verdict.js";
import { made } from "./made-finding.js";

const HEALTHY = { severity: /** @type {const} */ ("ok"), key: "headroom-ok", sentence: "Healthy. 26.2 GiB of head-room at the peak.", second: "The largest step needed 113.6 GiB." };
const TIGHT = { ...HEALTHY, severity: /** @type {const} */ ("crit"), key: "headroom-crit", sentence: "Tight. 1.9 GiB of head-room." };
/** @returns {any} */
const seen = (/** @type {any[]} */ findings, more = {}) => ({ findings, state: "live", silent_s: 8, ranksAreGone: false, world_size: 1, ...more });

test("the most urgent finding makes the sentence, its detail the second line", () => {
  const verdict = withFindings(HEALTHY, seen([made()]));
  assert.deepEqual([verdict.severity, verdict.sentence, verdict.second], ["crit", made().summary, made().detail]);
  assert.notEqual(withFindings(HEALTHY, seen([made({ severity: "warning" })])).key, verdict.key);
});

test("of two things wrong the second line begins with Also, and nothing is lost", () => {
  const second = made({ id: "two", severity: "warning", summary: "8.4 GiB belong to another process." });
  const verdict = withFindings(HEALTHY, seen([made(), second]));
  assert.deepEqual([verdict.second, verdict.more], ["Also: 8.4 GiB belong to another process.", made().detail]);
  assert.equal(withFindings(TIGHT, seen([second])).second, "Also: 8.4 GiB belong to another process.");
  assert.equal(withFindings(TIGHT, seen([made()])).second, `Also: ${TIGHT.sentence}`);
  assert.equal(withFindings(TIGHT, seen([made({ kind: "near_oom" })])).second, made().detail);
  const ran_out = withFindings(TIGHT, seen([made({ kind: "oom", severity: "warning", summary: "Ran out of memory at step 31." })]));
  assert.deepEqual([ran_out.severity, ran_out.sentence, ran_out.second], ["crit", "Ran out of memory at step 31.", made().detail]);
});

test("what is only worth knowing does not speak; what is being made sure of does, while nothing else is wrong", () => {
  assert.equal(withFindings(HEALTHY, seen([made({ severity: "info" })])), HEALTHY);
  const suspected = made({ severity: "info", stage: "suspected", summary: "Memory grew.", detail: "" });
  assert.deepEqual([withFindings(HEALTHY, seen([suspected])).sentence, withFindings(HEALTHY, seen([suspected])).second], ["Memory grew.", HEALTHY.second]);
  assert.equal(withFindings(TIGHT, seen([suspected])).sentence, TIGHT.sentence);
});

test("a stale run is told of as last known, without what was forecast then", () => {
  assert.equal(withFindings(HEALTHY, seen([made()], { state: "stale" })).sentence, "Last known: leaking 3.1 MiB per step at train.py:56, 8 s ago.");
  assert.match(withFindings(HEALTHY, seen([made({ summary: "8.4 GiB belong to it." })], { state: "stale" })).sentence, /^Last known: 8\.4 GiB belong to it, 8 s ago\.$/);
});

test("a run that died of it says so, one that recovered does not", () => {
  const oom = made({ kind: "oom", state: "final", summary: "Out of memory at step 31: asked for 198 MiB.", evidence: {} });
  const ended = withFindings({ ...HEALTHY, when: "Finished today." }, seen([oom], { state: "ended" }));
  assert.deepEqual([ended.severity, ended.sentence, ended.second], ["crit", oom.summary, `${oom.detail} Finished today.`]);
  const recovered = withFindings(HEALTHY, seen([{ ...oom, severity: "warning", evidence: { recovered_step: 32 } }], { state: "ended" }));
  assert.equal(recovered.sentence, HEALTHY.sentence);
  assert.match(recovered.second, /Found in it: Out of memory at step 31/);
  assert.match(withFindings(HEALTHY, seen([made()], { state: "lost" })).second, /Last known: Leaking/);
});

test("of several ranks the one is named, unless the sentence does", () => {
  assert.equal(withFindings(HEALTHY, seen([made({ ranks: [41] })], { world_size: 64 })).second, `Rank 41 of 64. ${made().detail}`);
  assert.equal(withFindings(HEALTHY, seen([made({ ranks: [41], summary: "Rank 41 of 64 is filling up." })], { world_size: 64 })).second, made().detail);
});

test("ranks that are gone come before a warning and after what is critical", () => {
  const gone = { ...HEALTHY, severity: /** @type {const} */ ("warn"), sentence: "Rank 2 of 4 is lost." };
  assert.equal(withFindings(gone, seen([made({ severity: "warning" })], { ranksAreGone: true })).sentence, gone.sentence);
  assert.equal(withFindings(gone, seen([made()], { ranksAreGone: true })).sentence, made().summary);
});
