import assert from "node:assert/strict";
import test from "node:test";
import { made } from "./findings/made-finding.js";
import { verdictOf } from "../vramscope_frontend/js/verdict.js";

const GIB = 2 ** 30;
const NOW = 1_800_000_000_000_000_000;
/** @returns {any} */
const seen = (changes = {}, run = {}, pill = {}) => ({
  run: { state: "live", started_ns: NOW - 3600e9, ended_ns: null, last_seen_ns: NOW, step: 4812, emulated: false, ranks: [{ rank: 0, host: "node3", connected: true, exit_code: null, end_reason: null }], ...run },
  pill: { state: "live", ...pill },
  limit_bytes: 139.8 * GIB,
  peak: { used: 113.6 * GIB, usedKnown: true, step: 4357 },
  worst: null,
  firstStep: 12,
  now_ns: NOW,
  silent_s: 0,
  viewOnly: null,
  samplesLost: 0,
  ...changes,
});

test("healthy is said only where it is known that nothing was found", () => {
  const unread = verdictOf(seen());
  assert.equal(unread.sentence, "26.2 GiB of head-room at the peak so far.");
  assert.match(unread.second, /113\.6 of 139\.8 GiB \(step 4,357\)\. Only head-room is judged here/);
  assert.equal(verdictOf(seen({ isJudged: true })).sentence, "Healthy. 26.2 GiB of head-room at the peak.");
  assert.doesNotMatch(verdictOf(seen({ isJudged: true, firstStep: null })).sentence, /Healthy/);
  assert.equal(verdictOf(seen({ isJudged: true, flatSteps: 1240 })).sentence, "Healthy. 26.2 GiB of head-room at the peak, no growth over the last 1,240 steps.");
  assert.equal(verdictOf(seen({ isJudged: true }, {}, { state: "stale" })).sentence, "Last known: healthy, 26.2 GiB of head-room, – ago.".replace("–", "0 s"));
});

test("tight says so first and changes the severity", () => {
  const verdict = verdictOf(seen({ peak: { used: 137.9 * GIB, usedKnown: true, step: 9 } }));
  assert.match(verdict.sentence, /^Tight\. 1\.9 GiB \(1\.4\u2009%\) of head-room at the peak so far\.$/);
  assert.equal(verdict.severity, "crit");
  assert.match(verdictOf(seen({ peak: { used: 137.9 * GIB, usedKnown: true, step: 9 }, flatSteps: 3200 })).sentence, /of head-room at the peak; flat for 3,200 steps\.$/);
});

test("warming up gives no verdict yet, unless it is tight already", () => {
  assert.equal(verdictOf(seen({ firstStep: 4800 })).sentence, "Watching since step 4,800. A verdict needs about 40 steps; 113.6 of 139.8 GiB used at the peak so far.");
  assert.match(verdictOf(seen({ firstStep: 4800, peak: { used: 138 * GIB, usedKnown: true, step: 1 } })).sentence, /^Tight/);
});

test("stale never claims that the job goes on", () => {
  const verdict = verdictOf(seen({ silent_s: 8 }, { ranks: [{ rank: 0, host: "node3", connected: false }] }, { state: "stale" }));
  assert.equal(verdict.sentence, "Last known: 26.2 GiB of head-room, 8 s ago.");
  assert.match(verdict.second, /^The agent on node3 does not answer\. If the job goes on/);
});

test("disconnected, lost and the ends", () => {
  assert.match(verdictOf(seen({}, {}, { state: "disconnected" })).sentence, /This page is cut off; the job does not notice\.$/);
  assert.equal(verdictOf(seen({ silent_s: 9 }, { state: "lost" }, { state: "lost" })).sentence, "Contact lost at step 4,812, without an end.");
  const end = (/** @type {any} */ rank) => verdictOf(seen({}, { state: "ended", ended_ns: NOW, ranks: [{ rank: 0, ...rank }] }, { state: "ended" }));
  assert.equal(end({ exit_code: 0, end_reason: "exit" }).sentence, "Ended well. Peak 113.6 of 139.8 GiB.");
  const flat = verdictOf(seen({ isJudged: true, flatSteps: 900 }, { state: "ended", ended_ns: NOW, ranks: [{ rank: 0, exit_code: 0, end_reason: "exit" }] }, { state: "ended" }));
  assert.equal(flat.sentence, "Ended well. Peak 113.6 of 139.8 GiB, no growth.");
  assert.match(end({ exit_code: null, end_reason: "exception", end_text: "ValueError: no" }).second, /ValueError: no/);
  assert.match(end({ exit_code: 1, end_reason: "exit" }).sentence, /^Ended with exit code 1 at step 4,812\./);
  assert.match(end({ exit_code: null, end_reason: "detach" }).sentence, /^Detached at step 4,812; the job may go on\./);
});

test("emulated, unknown outside, losses and rights are in the text", () => {
  const emulated = verdictOf(seen({ limit_bytes: 8 * GIB, peak: { used: 5.1 * GIB, usedKnown: true, step: 9 } }, { emulated: true }));
  assert.equal(emulated.sentence, "2.9 GiB of head-room on an emulated 8.0 GiB device at the peak so far.");
  assert.match(verdictOf(seen({ peak: { used: GIB, usedKnown: false, step: 1 } })).second, /outside of PyTorch is not known/);
  assert.match(verdictOf(seen({ samplesLost: 512 })).second, /512 samples are missing/);
  assert.equal(verdictOf(seen({ viewOnly: "You may look but not act." })).second, "You may look but not act.");
});

test("a finding of an emulated run says so in the second line", () => {
  const finding = made({ severity: "warning", summary: "Leaking.", detail: "Since step 3." });
  assert.equal(verdictOf(seen({ findings: [finding] }, { emulated: true })).second, "Since step 3. On an emulated device.");
  assert.equal(verdictOf(seen({ findings: [finding] })).second, "Since step 3.");
});

test("the rank that is worst off makes the sentence", () => {
  const verdict = verdictOf(seen({ worst: { rank: 41, ranks: 64, heard: 64, free: 1.4 * GIB, least: 6 * GIB, most: 12 * GIB } }));
  assert.match(verdict.sentence, /^Tight\. Rank 41 of 64 has the least head-room: 1\.4 GiB at the peak so far; the others have 6\.0 to 12\.0 GiB\.$/);
});

test("ranks that are alike are not told apart, unless some are not known yet", () => {
  const worst = { rank: 0, ranks: 8, heard: 8, free: 16.5 * GIB, least: 16.5 * GIB, most: 16.5 * GIB };
  assert.equal(verdictOf(seen({ worst })).sentence, "All 8 ranks are alike: 16.5 GiB of head-room at the peak so far.");
  assert.match(verdictOf(seen({ worst: { ...worst, heard: 5 } })).sentence, /^Rank 0 of 8 has the least head-room/);
  const judged = verdictOf(seen({ worst, isJudged: true }));
  assert.match(judged.sentence, /^Healthy\. All 8 ranks are alike/);
  assert.equal(judged.second, "No finding is open on any of them.");
});

test("on a small device ranks are told apart by MiB", () => {
  const worst = { rank: 2, ranks: 4, heard: 4, free: 0.77 * GIB, least: 0.824 * GIB, most: 0.824 * GIB };
  assert.equal(verdictOf(seen({ worst, limit_bytes: GIB, peak: { used: 0.23 * GIB, usedKnown: true, step: 100 } })).sentence, "Rank 2 of 4 has the least head-room: 788 MiB at the peak so far; the others have 844 MiB.");
});

test("every byte is said to be named only where it is", () => {
  assert.match(verdictOf(seen({ isNamed: true })).second, /^Every byte is named\. The largest step needed/);
  assert.doesNotMatch(verdictOf(seen()).second, /Every byte/);
});

test("a peak before the first step is not said to be a step's", () => {
  assert.match(verdictOf(seen({ run: { ...seen().run, step: 0 }, firstStep: null, peak: { used: 113.6 * GIB, usedKnown: true, step: 0 } })).second, /^The highest use was 113\.6 of 139\.8 GiB\./);
});
