import assert from "node:assert/strict";
import test from "node:test";
import { endOf, isGone, lastWords, recentRestart, restartsText, standOf, turnsOf, turnText } from "../vramscope_frontend/js/restarts.js";
import { pillOf } from "../vramscope_frontend/js/run-state.js";
import { verdictOverRuns } from "../vramscope_frontend/js/runs-verdict.js";
import { verdictOf } from "../vramscope_frontend/js/verdict.js";
import { runRow } from "../vramscope_frontend/js/runs-model.js";
import { happenings, turnings } from "../vramscope_frontend/js/marks.js";

const NOW = 1_800_000_000_000_000_000;
const S = 1e9;
const GIB = 2 ** 30;
/** @returns {any} */
const life = (/** @type {number} */ n, /** @type {any} */ changes = {}) => ({ life: n, kind: n ? "restart" : "start", host: "a", pid: 812 + 178 * n, started_ns: NOW - 900 * S + n * 600 * S, last_seen_ns: NOW, ended_ns: null, end_reason: null, end_text: null, exit_code: null, first_step: 1, last_step: 412, step_offset: 412 * n, ...changes });
/** @returns {any} */
const rank = (/** @type {number} */ n, /** @type {any} */ changes = {}) => ({ rank: n, host: "a", pid: 812, state: "live", connected: true, started_ns: NOW - 900 * S, last_seen_ns: NOW, step: 412, exit_code: null, end_reason: null, end_text: null, restarts: 0, max_restarts: 0, restart_count: 0, allow: "control", commands: [], lives: [life(0)], ...changes });
/** @returns {any} */
const run = (/** @type {any[]} */ ranks, /** @type {any} */ changes = {}) => ({ id: "r", name: "job", state: "live", started_ns: NOW - 900 * S, ended_ns: null, last_seen_ns: NOW, step: 412, world_size: ranks.length, emulated: false, ranks, ranks_connected: ranks.length, device_total_bytes: 100 * GIB, used_bytes: 50 * GIB, peak_reserved_bytes: 50 * GIB, ...changes });
const lost = (/** @type {number} */ n, ago_s = 120, /** @type {any} */ changes = {}) => rank(n, { state: "lost", connected: false, last_seen_ns: NOW - ago_s * S, ...changes });
const seen = (/** @type {any} */ one, state = one.state) => verdictOf(/** @type {any} */ ({ run: one, pill: { state }, limit_bytes: 100 * GIB, peak: { used: 50 * GIB, usedKnown: true, step: 9 }, worst: null, firstStep: 1, now_ns: NOW, silent_s: 0, viewOnly: null, samplesLost: 0 }));

test("a restart names rank, processes and step", () => {
  const [turn] = turnsOf(run([rank(0), rank(2, { lives: [life(0), life(1)] })]));
  assert.equal(turnText(turn, 4), "Restarted: rank 2, pid 812 → 990, at step 412");
  assert.equal(turnText(turn, 1), "Restarted: pid 812 → 990, at step 412");
});

test("ranks that are started again together are one restart, twice is two", () => {
  const lives = [life(0), life(1), life(2, { started_ns: NOW - 10 * S })];
  const turns = turnsOf(run([rank(0, { lives }), rank(1, { lives: lives.map((one) => ({ ...one, started_ns: one.started_ns + 3 * S })) })]));
  assert.deepEqual(turns.map((turn) => turnText(turn, 2)), ["Restarted: all 2 ranks, at step 412", "Restarted: all 2 ranks, at step 412"]);
});

test("attaching again is no restart", () => {
  const one = run([rank(0, { lives: [life(0, { end_reason: "detach" }), life(1, { kind: "attach", pid: 812 })] })]);
  assert.equal(turnText(turnsOf(one)[0], 1), "Attached again: pid 812, at step 412");
  assert.equal(recentRestart(one, NOW), null);
});

test("how a life ended, as far as it is known", () => {
  assert.equal(endOf(life(0), true), "without a word: killed, or its host is gone");
  assert.equal(endOf(life(0), false), "runs");
  assert.equal(endOf(life(0, { ended_ns: NOW, exit_code: 1, end_text: "ValueError: x" }), true), "exit code 1: ValueError: x");
  assert.equal(endOf(life(0, { ended_ns: NOW, end_reason: "detach" }), true), "detached");
});

test("who is gone, and its last words", () => {
  assert.ok(isGone(lost(1)) && !isGone(rank(1)));
  assert.ok(!isGone(rank(1, { state: "ended", end_reason: "exit", exit_code: 0 })));
  assert.ok(!isGone(rank(1, { state: "ended", end_reason: "detach", exit_code: null })));
  assert.equal(lastWords(lost(1)), "lost at step 412, without a word");
  assert.equal(lastWords(rank(1, { state: "ended", exit_code: 1, end_text: "ValueError: x" })), "exit code 1 at step 412: ValueError: x");
});

test("one rank lost among others makes the sentence", () => {
  const verdict = seen(run([rank(0), rank(1), lost(2), rank(3)]));
  assert.equal(verdict.sentence, "Rank 2 of 4 is lost: nothing heard since step 412; the other 3 are live.");
  assert.match(verdict.second, /not known\. Silent for 2 min/);
  assert.equal(seen(run([lost(0), lost(1), rank(2)])).sentence, "2 of 3 ranks are lost: nothing heard since step 412; the other one is live.");
});

test("what else is wrong comes second", () => {
  const one = run([rank(0), lost(1)]);
  const verdict = verdictOf(/** @type {any} */ ({ run: one, pill: { state: "live" }, limit_bytes: 100 * GIB, peak: { used: 99 * GIB, usedKnown: true, step: 9 }, worst: null, firstStep: 1, now_ns: NOW, silent_s: 0, viewOnly: null, samplesLost: 0 }));
  assert.match(verdict.second, /Also: 1\.0 GiB \(1\.0\u2009%\) of head-room/);
});

test("a rank that said why it ended is quoted", () => {
  const verdict = seen(run([rank(0), rank(1, { state: "ended", exit_code: 1, end_text: "ValueError: no" })]));
  assert.equal(verdict.sentence, "Rank 1 of 2 ended with exit code 1 at step 412; the other one is live.");
  assert.equal(verdict.second, "Rank 1: ValueError: no");
});

test("restarting is said while ranks come back, and only for a while", () => {
  const back = rank(0, { lives: [life(0), life(1, { started_ns: NOW - 5 * S })] });
  const one = run([back, lost(1, 30)]);
  assert.equal(seen(one).sentence, "Restarting: 1 of 2 ranks are back.");
  assert.match(pillOf({ run: one, link: { state: "open", attempt: 0, retry_at_ms: 0, reason: "" }, now_ns: NOW, monotonic_ms: 0 }).text, /restarting/);
  assert.equal(standOf(run([back, lost(1, 300)]), NOW)?.mayComeBack, false);
});

test("a job that its launcher may start again is not written off yet", () => {
  const gone = (/** @type {number} */ n, ago_s = 10) => lost(n, ago_s, { max_restarts: 3, restart_count: 1, launcher: "torchrun" });
  const one = run([gone(0), gone(1)], { state: "lost" });
  const verdict = seen(one, "lost");
  assert.equal(verdict.sentence, "All 2 ranks ended at step 412; torchrun may start them again.");
  assert.equal(verdict.second, "1 of 3 restarts used. Rank 0: lost at step 412, without a word.");
  assert.match(pillOf({ run: one, link: { state: "open", attempt: 0, retry_at_ms: 0, reason: "" }, now_ns: NOW, monotonic_ms: 0 }).text, /^Ended, may be restarted/);
  assert.match(seen(run([gone(0, 900)], { state: "lost" }), "lost").sentence, /^Contact lost at step 412/);
  assert.match(seen(run([lost(0, 10)], { state: "lost" }), "lost").sentence, /^Contact lost/);
});

test("a restart that is over is news for half an hour", () => {
  const restarted = (/** @type {number} */ ago_s) => run([rank(0, { lives: [life(0), life(1, { started_ns: NOW - ago_s * S })] })], { step: 80 });
  assert.match(seen(restarted(240)).second, /Restarted: pid 812 → 990, at step 412, 4 min ago\.$/);
  assert.doesNotMatch(seen(restarted(3600)).second, /Restarted/);
});

test("restarts in words", () => {
  assert.equal(restartsText(2, NOW - 240 * S, NOW), "restarted 2 times, last 4 min ago");
  assert.equal(restartsText(1, NOW - 5 * S, NOW), "restarted 5 s ago");
  assert.equal(restartsText(0, null, NOW), "");
});

test("the list of runs says who has lost ranks and who was restarted", () => {
  const says = (/** @type {any} */ changes) => runRow(run([], { world_size: 4, ...changes }), null, NOW).says;
  assert.deepEqual([says({ ranks_lost: 1 }).severity, says({ ranks_lost: 1 }).text], ["warn", "1 of 4 ranks lost; 50.0 GiB of head-room"]);
  assert.equal(says({ restarts: 2, restarted_ns: NOW - 240 * S }).text, "50.0 GiB of head-room; restarted 2 times, last 4 min ago");
  assert.equal(says({ restarts: 2, restarted_ns: NOW - 7200 * S }).text, "50.0 GiB of head-room");
  const row = runRow(run([], { world_size: 4, ranks_lost: 1 }), null, NOW);
  assert.equal(verdictOverRuns([row]).sentence, "job has lost 1 of 4 ranks; the others are live.");
});

test("restarts and lost ranks are marks and lines of the list", () => {
  const all = turnings(run([rank(0, { lives: [life(0), life(1)] }), lost(1)]));
  assert.deepEqual(all.map((one) => [one.kind, one.glyph, one.rank, one.text]), [
    ["restart", "↻", 0, "Restarted: rank 0, pid 812 → 990, at step 412"],
    ["lost", "✕", 1, "Rank 1: lost at step 412, without a word"],
  ]);
});

test("what the agent says when it is attached again is no second line", () => {
  /** @returns {any} */
  const attached = (/** @type {number} */ n, /** @type {number} */ time_ns) => ({ time_ns, rank: n, step: null, kind: "attach", text: "attached", data: {} });
  const one = run([rank(0, { lives: [life(0), life(1)] }), rank(1)]);
  const began = one.ranks[0].lives[1].started_ns;
  const all = happenings([attached(0, began - 20 * S), attached(0, began + S), attached(1, began + S)], [], 2, turnings(one));
  assert.deepEqual(all.map((each) => each.text), ["Rank 0: attached", "Restarted: rank 0, pid 812 → 990, at step 412", "Rank 1: attached"]);
});
