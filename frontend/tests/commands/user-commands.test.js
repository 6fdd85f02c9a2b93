import assert from "node:assert/strict";
import test from "node:test";
import { problemOf, valueOf } from "../../vramscope_frontend/js/commands/param-form.js";
import { fieldOf, ownCommands } from "../../vramscope_frontend/js/commands/user-commands.js";

const save = { name: "user.save", summary: "Write a checkpoint.", same_step: true, params: [{ name: "path", kind: "str" }, { name: "keep", kind: "int", default: 3, least: 1, most: 9 }] };
/** @returns {any} */
const rank = (/** @type {number} */ number, /** @type {any[]} */ ...user_commands) => ({ rank: number, user_commands });

test("a job's own command becomes an entry with its form", () => {
  const [{ entry, ranks, differs }] = ownCommands([rank(0, save), rank(1, save)], 2);
  assert.deepEqual([entry.title, entry.summary, entry.needsControl, entry.place, entry.sameStep], ["save", "Write a checkpoint.", true, "step boundary", true]);
  assert.deepEqual([ranks, differs], [[0, 1], null]);
  assert.deepEqual(entry.params?.map((field) => field.kind), ["text", "number"]);
});

test("what the job says changes training asks for a tick, and nothing else does", () => {
  const entry = (/** @type {object} */ more) => ownCommands([rank(0, { ...save, ...more })], 1)[0].entry;
  assert.equal(entry({}).changesTraining, false);
  assert.equal(entry({ changes_training: true }).changesTraining, true);
  assert.match(entry({ changes_training: true }).consent ?? "", /job says so/);
  const [{ differs }] = ownCommands([rank(0, save), rank(1, { ...save, changes_training: true })], 2);
  assert.match(differs ?? "", /declared differently on rank 1/);
});

test("ranks that differ are named", () => {
  const other = { ...save, params: [] };
  const [{ ranks, differs }] = ownCommands([rank(0, save), rank(1, other), rank(2)], 3);
  assert.deepEqual(ranks, [0]);
  assert.equal(differs, "The ranks differ: not declared on rank 2, declared differently on rank 1. The form is that of rank 0.");
});

test("what is sent has the type that was declared, and what has no default is asked for", () => {
  const sent = (/** @type {any} */ param, /** @type {string | boolean} */ given) => [problemOf(fieldOf(param), String(given)), valueOf(fieldOf(param), given)];
  assert.deepEqual(sent({ name: "n", kind: "int", least: 1, most: 9 }, "4"), [null, 4]);
  assert.match(String(sent({ name: "n", kind: "int", least: 1, most: 9 }, "4.5")[0]), /whole number from 1 to 9/);
  assert.deepEqual(sent({ name: "n", kind: "float", least: 0 }, "0.5"), [null, 0.5]);
  assert.match(String(sent({ name: "n", kind: "float", least: 0 }, "-1")[0]), /at least 0/);
  assert.match(String(sent({ name: "n", kind: "int" }, "")[0]), /needed/);
  assert.deepEqual(sent({ name: "s", kind: "str", default: "a" }, ""), [null, ""]);
  assert.match(String(sent({ name: "s", kind: "str" }, "")[0]), /needed/);
  assert.deepEqual(sent({ name: "b", kind: "bool", default: true }, false), [null, false]);
  assert.deepEqual(sent({ name: "b", kind: "bool" }, "yes"), [null, true]);
  assert.match(String(sent({ name: "b", kind: "bool" }, "")[0]), /choose one/);
  assert.deepEqual(sent({ name: "c", kind: "choice", choices: ["a", "b"], default: "b" }, "b"), [null, "b"]);
});
