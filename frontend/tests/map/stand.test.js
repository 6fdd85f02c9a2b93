import assert from "node:assert/strict";
import test from "node:test";
import { MapState } from "../../vramscope_frontend/js/map/map-state.js";
import { mapStand } from "../../vramscope_frontend/js/map/stand.js";
import { mapOf } from "./made-map.js";

const RUN = /** @type {any} */ ({ state: "live", ranks: [{ rank: 0, state: "live", connected: true, commands: ["watch_map"] }] });
const runAs = (/** @type {any} */ rank) => ({ ...RUN, ranks: [{ ...RUN.ranks[0], ...rank }] });
const stand = (/** @type {any} */ seen) => mapStand({ run: RUN, rank: 0, map: new MapState(), refused: null, waited_ms: 9000, silent_ms: null, ...seen });

test("without a map it says what it waits for, or why there will be none", () => {
  assert.equal(stand({ waited_ms: 100 }).notice, "Reading the map");
  assert.equal(stand({}).notice, "Waiting for the first look at the segments.");
  assert.equal(stand({ run: runAs({ connected: false }) }).notice, "Waiting for the agent of this rank to connect.");
  assert.match(stand({ run: runAs({ commands: [] }) }).notice, /does not send its map/);
  assert.match(stand({ run: runAs({ state: "ended" }) }).notice, /This run has ended/);
  assert.match(stand({ run: runAs({ state: "lost" }) }).notice, /Contact with this rank is lost/);
  assert.match(stand({ refused: "expected a new id" }).notice, /cannot be followed: expected a new id/);
  assert.equal(stand({ map: mapOf([], { why_not: "the job has not used the device yet" }) }).notice, "There is no map: the job has not used the device yet.");
});

test("a map that is kept up is drawn without a word", () => {
  assert.deepEqual(stand({ map: mapOf([{ address: 1, blocks: "a1" }]), silent_ms: 400 }), { isDrawn: true, isStale: false, notice: "", asOf: "", mayAsk: false });
});

test("a map that gets no news is old, and so is that of a run that is over", () => {
  const map = mapOf([{ address: 1, blocks: "a1" }]);
  const late = stand({ map, silent_ms: 5000 });
  assert.deepEqual([late.isStale, late.asOf], [true, "Last known: "]);
  assert.match(late.notice, /^No new look since /);
  const over = stand({ map, silent_ms: 5000, run: runAs({ state: "ended" }) });
  assert.equal(over.notice, "The last look before the run ended, at step 10.");
});

test("a slow rate is no reason to call it old, and on request it can be asked for", () => {
  const slow = mapOf([{ address: 1, blocks: "a1" }], { rate_hz: 0.1 });
  assert.equal(stand({ map: slow, silent_ms: 20_000 }).isStale, false);
  const asked = stand({ map: mapOf([{ address: 1, blocks: "a1" }], { rate_hz: 0 }), silent_ms: 60_000 });
  assert.deepEqual([asked.isStale, asked.mayAsk], [false, true]);
});
