import assert from "node:assert/strict";
import test from "node:test";
import { mergeCommands, mergeEvents } from "../../vramscope_frontend/js/data/run-session.js";

/** @returns {any} */
const command = (/** @type {string} */ id, /** @type {string} */ state) => ({ id, state, created_ns: Number(id) });

test("a command that is done does not run again because an old answer came late", () => {
  const done = mergeCommands([command("1", "running")], [command("1", "done")]);
  assert.equal(mergeCommands(done, [command("1", "queued")])[0].state, "done");
});

test("an event that comes by fetch and by feed is one event", () => {
  /** @type {any} */
  const event = { time_ns: 1, rank: 0, kind: "mark", text: "x" };
  assert.equal(mergeEvents([event], [{ ...event }, { ...event, time_ns: 0 }]).length, 2);
  assert.equal(mergeEvents([event], [{ ...event, time_ns: 0 }])[0].time_ns, 0);
});
