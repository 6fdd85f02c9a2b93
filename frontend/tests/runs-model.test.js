import assert from "node:assert/strict";
import test from "node:test";
import { matches, passes, runRow, sortRows } from "../vramscope_frontend/js/runs-model.js";

const GIB = 2 ** 30;
const NOW = 1_800_000_000_000_000_000;
/** @returns {any} */
const run = (/** @type {string} */ name, changes = {}) => ({ id: name, name, state: "live", started_ns: NOW - 60e9, ended_ns: null, last_seen_ns: NOW, world_size: 1, emulated: false, user: "ada", script: "train.py", device_name: "NVIDIA H200", device_total_bytes: 100 * GIB, step: 9, peak_reserved_bytes: 60 * GIB, used_bytes: 62 * GIB, ranks_connected: 1, fullest_rank: 0, exit_code: null, ...changes });
const row = (/** @type {string} */ name, changes = {}, highest = null) => runRow(run(name, changes), highest, NOW);

test("left is what the highest use that is known leaves", () => {
  assert.equal(row("a").free, 38 * GIB);
  assert.equal(row("a", { used_bytes: null }).free, 40 * GIB);
  assert.equal(runRow(run("a"), 99 * GIB, NOW).free, GIB);
  assert.equal(row("a", { used_bytes: null, peak_reserved_bytes: null }).free, null);
});

test("what it says follows the state", () => {
  assert.match(row("a").says.text, /^38\.0 GiB of head-room$/);
  assert.match(runRow(run("a"), 99 * GIB, NOW).says.text, /^Tight: 1\.0 GiB/);
  assert.match(row("a", { last_seen_ns: NOW - 48e9 }).says.text, /^No data for 48 s/);
  assert.match(row("a", { state: "lost", last_seen_ns: NOW - 48e9 }).says.text, /^Contact lost 48 s ago without an end, at step 9/);
  assert.match(row("a", { state: "ended" }).says.text, /^Ended, peak 62\.0 of 100\.0 GiB/);
  assert.match(row("a", { emulated: true }).says.text, /emulated/);
});

test("live before lost before ended, the tightest first", () => {
  const sorted = sortRows([row("ended", { state: "ended", ended_ns: NOW }), row("roomy"), row("lost", { state: "lost" }), runRow(run("tight"), 99 * GIB, NOW)]);
  assert.deepEqual(sorted.map((one) => one.run.name), ["tight", "roomy", "lost", "ended"]);
});

test("filters", () => {
  const stale = row("a", { last_seen_ns: NOW - 48e9 });
  assert.ok(passes(stale, "live"));
  assert.ok(!passes(stale, "ended"));
  assert.ok(matches(stale, "TRAIN"));
  assert.ok(!matches(stale, "nothing"));
});

test("what was found is what a run says, and when it is full has a column of its own", () => {
  const finding = { id: "1", kind: "leak", severity: "critical", stage: "confirmed", summary: "Leaking 3.1 MiB per step at train.py:56. Out of memory in 26 to 34 minutes.", forecast: { early_s: 1560, late_s: 2040, confidence: 0.9 } };
  const leaking = row("a", { finding, findings_open: { critical: 1, warning: 0, info: 0 } });
  assert.deepEqual([leaking.says.severity, leaking.says.text, leaking.full_in], ["crit", "Leaking 3.1 MiB per step at train.py:56", "26 to 34 min"]);
  assert.ok(passes(leaking, "found") && !passes(row("b"), "found"));
  assert.ok(matches(leaking, "train.py:56"));
  const soon = row("soon", { finding: { ...finding, forecast: { early_s: 60, late_s: 90, confidence: 0.9 } } });
  assert.deepEqual(sortRows([row("roomy"), leaking, soon]).map((one) => one.run.name), ["soon", "a", "roomy"]);
  const stale = row("a", { finding, last_seen_ns: NOW - 48e9 });
  assert.deepEqual([stale.says.text, stale.full_in], ["No data for 48 s; last known: leaking 3.1 MiB per step at train.py:56", null]);
  assert.match(row("a", { finding: null }).says.text, /^Healthy, 38\.0 GiB of head-room$/);
  assert.match(row("a", { finding: { ...finding, severity: "info" } }).says.text, /^38\.0 GiB/);
  const oom = row("a", { state: "ended", exit_code: 1, finding: { ...finding, kind: "oom", summary: "Out of memory at step 31.", forecast: null } });
  assert.deepEqual([oom.says.severity, oom.says.text], ["crit", "Out of memory at step 31"]);
});

test("a run that failed says its exit code", () => {
  const says = (/** @type {number} */ exit_code) => runRow(run("over", { state: "ended", ended_ns: NOW, exit_code }), null, NOW).says;
  assert.deepEqual([says(1).severity, says(1).text], ["warn", "Ended with exit code 1, peak 62.0 of 100.0 GiB"]);
  assert.deepEqual([says(0).severity, says(0).text], ["info", "Ended, peak 62.0 of 100.0 GiB"]);
});
