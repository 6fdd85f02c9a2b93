import assert from "node:assert/strict";
import test from "node:test";
import { bodyOf, EMPTY_FIELDS, fieldsOf, problemOfPolicy } from "../../vramscope_frontend/js/commands/policy-body.js";
import { firedText, firingText, policiesOf, standOfPolicy, watchText } from "../../vramscope_frontend/js/commands/policy-words.js";

const GIB = 2 ** 30;
const NOW = 1_800_000_000_000_000_000;
const filled = { ...EMPTY_FIELDS, name: " Full ", value: "120" };
/** @returns {any} */
const policy = (changes = {}) => ({ ...bodyOf(filled, "r1", {}, null), id: "p", off_reason: "", failures_in_a_row: 0, fired: 0, last_fired_ns: null, watching: [], ...changes });

test("a new policy is off, a dry run, and in the units of the protocol", () => {
  const body = bodyOf(filled, "r1", { x: 1 }, null);
  assert.deepEqual(body, { name: "Full", run: "r1", when: { series: "device.used_bytes", op: ">", value: 120 * GIB, ranks: "any" }, for: { seconds: 30 }, then: { command: "empty_cache", params: { x: 1 }, ranks: "all" }, every_s: 600, mode: "dry_run", allow_training: false, is_on: false });
});

test("what is read back and saved again is the same", () => {
  for (const changes of [{}, { kind: "finding", finding: "", severity: "warning", confirmed: false, heldUnit: "steps", held: "5" }, { held: "", isForAll: true, target: "matching", series: "step.duration_us", value: "7" }]) {
    const body = bodyOf(/** @type {any} */ ({ ...filled, ...changes }), "r1", {}, null);
    const again = bodyOf(fieldsOf(policy(body)), "other", {}, { run: body.run, is_on: false, ranks: body.then.ranks });
    assert.deepEqual(again, body);
  }
});

test("what a change does not touch is kept: the ranks that were named, and whether it is on", () => {
  const kept = bodyOf(filled, "r1", {}, { run: "r2", is_on: true, ranks: [3, 5] });
  assert.deepEqual([kept.run, kept.is_on, kept.then.ranks], ["r2", true, [3, 5]]);
});

test("what is wrong with the form is said before it is sent", () => {
  assert.equal(problemOfPolicy(filled), null);
  assert.match(problemOfPolicy({ ...filled, name: " " }) ?? "", /^Name/);
  assert.match(problemOfPolicy({ ...filled, value: "" }) ?? "", /^Value/);
  assert.match(problemOfPolicy({ ...filled, held: "-1" }) ?? "", /^For/);
  assert.match(problemOfPolicy({ ...filled, every_min: "0.1" }) ?? "", /10 s or more/);
});

test("how a policy stands and what it saw", () => {
  assert.deepEqual(standOfPolicy(policy()), { text: "Off", tone: "off" });
  assert.equal(standOfPolicy(policy({ off_reason: "three failures" })).text, "Switched off by the server: three failures");
  assert.match(standOfPolicy(policy({ is_on: true })).text, /dry run only/);
  const watch = { run: "r1", run_name: "", holds: true, ranks: [3], held_s: 12, held_steps: null, value: 1, note: "" };
  assert.equal(standOfPolicy(policy({ is_on: true, mode: "act", watching: [watch] })).tone, "holds");
  assert.equal(watchText(watch, 8), "The condition holds on rank 3, for 12.0 s.");
  assert.equal(watchText({ ...watch, note: "no rank sends this series" }, 8), "no rank sends this series");
  assert.equal(firedText(policy(), NOW), "Never fired.");
  assert.match(firedText(policy({ fired: 2, last_fired_ns: NOW - 90e9, failures_in_a_row: 1 }), NOW), /^Fired 2 times, last 90 s ago, at .*1 failure in a row/);
  assert.match(firingText(/** @type {any} */ ({ command: "gc_collect", mode: "dry_run", state: "logged", result: "" })), /nothing was sent/);
});

test("a run shows its own policies and those of all runs", () => {
  const all = [policy({ run: null }), policy({ run: "r1" }), policy({ run: "train" }), policy({ run: "r9" })];
  assert.equal(policiesOf(all, { id: "r1", name: "train" }).length, 3);
});
