import assert from "node:assert/strict";
import test from "node:test";
import { headroomSeverity, pillOf, stateOf } from "../vramscope_frontend/js/run-state.js";

const NOW = 1_800_000_000_000_000_000;
const OPEN = { state: /** @type {const} */ ("open"), attempt: 0, retry_at_ms: 0, reason: "" };
const rank = { rank: 0, state: "live", allow: "control", commands: ["empty_cache"], exit_code: null, end_reason: null };
/** @returns {any} */
const run = (changes = {}) => ({ state: "live", started_ns: NOW - 60e9, ended_ns: null, last_seen_ns: NOW - 0.2e9, world_size: 1, emulated: false, step: 4812, ranks_connected: 1, device_total_bytes: 8 * 2 ** 30, ranks: [rank], ...changes });
const pill = (/** @type {any} */ changes) => pillOf({ run: run(), link: OPEN, now_ns: NOW, monotonic_ms: 0, rate_hz: 10, ...changes });

test("live: state, step, rate", () => {
  const made = pill({});
  assert.deepEqual([made.state, made.shape, made.text], ["live", "dot", "Live · step 4,812 · 10 Hz"]);
});

test("three seconds without data are stale, although the server still says live", () => {
  assert.equal(stateOf(run({ last_seen_ns: NOW - 2.9e9 }), NOW), "live");
  assert.equal(stateOf(run({ last_seen_ns: NOW - 3.1e9 }), NOW), "stale");
  const made = pill({ run: run({ last_seen_ns: NOW - 8e9, ranks_connected: 0 }) });
  assert.deepEqual([made.state, made.text], ["stale", "No data for 8 s · agent not connected"]);
});

test("a page that lost its server says so, whatever the run was", () => {
  for (const state of ["live", "ended", "lost"]) {
    const made = pill({ run: run({ state }), link: { state: "waiting", attempt: 3, retry_at_ms: 4000, reason: "" } });
    assert.equal(made.state, "disconnected");
    assert.match(made.text, /^Reconnecting · .*try 3 in 4 s$/);
    assert.equal(made.retry, true);
  }
  assert.equal(pill({ link: { state: "connecting", attempt: 0, retry_at_ms: 0, reason: "" } }).state, "loading");
  assert.equal(pill({ link: { state: "connecting", attempt: 2, retry_at_ms: 0, reason: "" } }).state, "disconnected");
});

test("ended and lost are the server's word and never turn stale", () => {
  const ended = pill({ run: run({ state: "ended", ended_ns: NOW, last_seen_ns: NOW - 9e12, ranks: [{ ...rank, exit_code: 0 }] }) });
  assert.deepEqual([ended.state, ended.shape, ended.text], ["ended", "square", "Ended · exit 0 · 4,812 steps · 60.0 s"]);
  const failed = pill({ run: run({ state: "ended", ended_ns: NOW, ranks: [{ ...rank, exit_code: 1 }] }) });
  assert.match(failed.text, /exit 1/);
  const lost = pill({ run: run({ state: "lost", last_seen_ns: NOW - 10_920e9 }) });
  assert.deepEqual([lost.state, lost.shape, lost.text], ["lost", "cross", "Lost · silent for 3 h 02 min"]);
});

test("emulated is in words in every state", () => {
  assert.match(pill({ run: run({ emulated: true }) }).text, /^Emulated 8\.0 GiB/);
  for (const state of ["ended", "lost"]) assert.match(pill({ run: run({ state, emulated: true }) }).text, /emulated/);
});

test("missing ranks and missing rights are said", () => {
  assert.match(pill({ run: run({ world_size: 64, ranks_connected: 63 }) }).text, /63 of 64 ranks/);
  assert.match(pill({ mayControl: false }).text, /view only/);
});

test("a run that was never heard of waits", () => {
  assert.equal(pill({ run: run({ last_seen_ns: null }) }).state, "waiting");
  assert.equal(pill({ run: null }).state, "loading");
});

test("head-room has the severity of its share", () => {
  assert.deepEqual([1, 3, 6].map((free) => headroomSeverity(free, 100)), ["crit", "warn", "ok"]);
  assert.equal(headroomSeverity(null, 100), null);
});
