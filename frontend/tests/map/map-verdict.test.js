import assert from "node:assert/strict";
import test from "node:test";
import { fitOf } from "../../vramscope_frontend/js/map/fits.js";
import { mapFacts } from "../../vramscope_frontend/js/map/map-facts.js";
import { largestPiece, mapVerdict } from "../../vramscope_frontend/js/map/map-verdict.js";
import { mapOf, MIB } from "./made-map.js";

const say = (/** @type {number} */ mib, /** @type {number | null} */ room_mib, /** @type {any} */ more = {}) => {
  const segments = [...mapOf([{ address: 0, blocks: "a20 f150 a8 f14 a6" }]).segments.values()];
  const facts = mapFacts(segments);
  const room = room_mib === null ? null : room_mib * MIB;
  return mapVerdict({ request: mib * MIB, isTyped: true, fit: fitOf(segments, mib * MIB, facts, room), facts, room, limit_bytes: 3072 * MIB, isExpandable: false, asOf: "", ...more });
};

test("what fits nowhere says what the largest piece is, and of how much", () => {
  const verdict = say(198, 166);
  assert.equal(verdict.sentence, "A request of 198 MiB fits nowhere: the largest piece is 166 MiB, of 330 MiB free.");
  assert.equal(verdict.second, "164 MiB lie between live blocks in 2 pieces, 166 MiB are left of the 3.0 GiB limit. Expandable segments can join free pieces.");
  assert.equal(verdict.severity, "warn");
});

test("what fits says where, and no severity", () => {
  assert.deepEqual([say(140, 166).sentence, say(140, 166).severity], ["A request of 140 MiB fits into a free block of 150 MiB.", "ok"]);
  assert.equal(say(160, 166).sentence, "A request of 160 MiB takes a new segment of 160 MiB; 166 MiB are left.");
  assert.equal(say(160, null).severity, "info");
});

test("a size that nobody typed is called by where it is from", () => {
  assert.match(say(20, 0, { isTyped: false }).sentence, /^Another block like the largest, 20.0 MiB, fits into/);
});

test("an old map is spoken of as such", () => {
  const verdict = say(198, 166, { asOf: "Last known: " });
  assert.match(verdict.sentence, /^Last known: a request of 198 MiB fits nowhere/);
  assert.equal(verdict.severity, "quiet");
});

test("the largest piece is a free block or what is left on the device", () => {
  const facts = mapFacts(mapOf([{ address: 0, blocks: "a1 f9" }]).segments.values());
  assert.deepEqual([largestPiece(facts, 5 * MIB), largestPiece(facts, 50 * MIB), largestPiece(facts, null)], [9 * MIB, 50 * MIB, 9 * MIB]);
});
