import assert from "node:assert/strict";
import test from "node:test";
import { freeParts, mapFacts } from "../../vramscope_frontend/js/map/map-facts.js";
import { mapOf, MIB, segmentOf } from "./made-map.js";

const factsOf = (/** @type {import("./made-map.js").Made[]} */ made) => mapFacts(mapOf(made).segments.values());

test("free memory is told apart by what empty_cache can do with it", () => {
  const facts = factsOf([
    { address: 1000, blocks: "a1 f2 a1 f3" },
    { address: 2e9, blocks: "f8" },
    { address: 3e9, blocks: "a1 f4", flags: 5 },
    { address: 4e9, blocks: "p1 f1" },
  ]);
  assert.deepEqual([facts.stranded, facts.strandedPieces, facts.cached, facts.privateFree, facts.pending], [5 * MIB, 2, 9 * MIB, 4 * MIB, MIB]);
  assert.deepEqual([facts.live, facts.liveBlocks, facts.free, facts.reserved], [3 * MIB, 3, 14 * MIB, 22 * MIB]);
  assert.equal(facts.largestFree?.segment.address, 2e9);
});

test("whole pages of an expandable segment could go, what is left of them could not", () => {
  const segment = segmentOf({ address: 0, blocks: "a1 f6 a1", flags: 3, page_bytes: 2 * MIB });
  assert.deepEqual(freeParts(segment, 1, MIB, 7 * MIB), [
    { offset: MIB, size: MIB, kind: "stranded" },
    { offset: 2 * MIB, size: 4 * MIB, kind: "cached" },
    { offset: 6 * MIB, size: MIB, kind: "stranded" },
  ]);
  const facts = factsOf([{ address: 0, blocks: "a1 f6 a1", flags: 3, page_bytes: 2 * MIB }]);
  assert.deepEqual([facts.stranded, facts.cached], [2 * MIB, 4 * MIB]);
});

test("what waits for another stream joins the free stretch beside it", () => {
  const facts = factsOf([{ address: 0, blocks: "f1 p1 f2 a1", flags: 3, page_bytes: 2 * MIB }]);
  assert.deepEqual([facts.stranded, facts.cached, facts.pending], [0, 3 * MIB, MIB]);
});

test("the stream with the most live memory is the main one", () => {
  assert.equal(factsOf([{ address: 1, blocks: "a1 f9", stream: 7 }, { address: 2e9, blocks: "a2", stream: 9 }]).mainStream, 9);
  assert.equal(factsOf([]).mainStream, 0);
});
