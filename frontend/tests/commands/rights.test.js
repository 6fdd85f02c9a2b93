import assert from "node:assert/strict";
import test from "node:test";
import { reasonNotToAct, viewOnlyReason } from "../../vramscope_frontend/js/commands/rights.js";

const OPEN = { state: /** @type {const} */ ("open"), attempt: 0, retry_at_ms: 0, reason: "" };
const rank = { rank: 0, state: "live", allow: "control", commands: ["empty_cache"] };
/** @returns {any} */
const run = (changes = {}) => ({ state: "live", world_size: 1, ranks: [rank], ...changes });
const ask = (/** @type {any} */ changes) => reasonNotToAct({ run: run(), link: OPEN, scopes: ["view", "control"], command: "empty_cache", needsControl: true, ...changes });

test("why a command cannot be sent", () => {
  assert.equal(ask({}), null);
  assert.match(ask({ link: { ...OPEN, state: "waiting" } }) ?? "", /not connected/);
  assert.match(ask({ run: run({ state: "ended" }) }) ?? "", /ended/);
  assert.equal(ask({ scopes: ["view"], needsControl: false }), null);
});

test("a viewer's token, an observing agent and an agent without the command are told apart, each with its way out", () => {
  const observing = run({ ranks: [{ ...rank, allow: "observe" }] });
  assert.match(ask({ scopes: ["view"] }) ?? "", /your token has no control right.*vramscope token create --scope view,control/);
  assert.match(ask({ run: observing }) ?? "", /VRAMSCOPE_ALLOW=observe.*--allow control/);
  assert.match(ask({ command: "stop" }) ?? "", /does not accept "Stop training".*VRAMSCOPE_ALLOW/);
  assert.match(viewOnlyReason(run(), ["view"]) ?? "", /token/);
  assert.match(viewOnlyReason(observing, ["view", "control"]) ?? "", /agent/);
  assert.equal(viewOnlyReason(run(), ["view", "control"]), null);
});

test("what all ranks have to do is off where one of them cannot", () => {
  const pair = (/** @type {any} */ second) => run({ world_size: 2, ranks: [rank, { ...rank, rank: 1, ...second }] });
  assert.equal(ask({ run: pair({}), wholeRun: true }), null);
  assert.match(ask({ run: pair({ commands: [] }), wholeRun: true }) ?? "", /Needs all ranks: .* rank 1 does not accept/);
  assert.match(ask({ run: pair({ state: "lost" }), wholeRun: true }) ?? "", /1 of 2 are not live/);
  assert.equal(ask({ run: pair({ commands: [] }) }), null);
});
