import assert from "node:assert/strict";
import test from "node:test";
import { Packing, rowBytesFor } from "../../vramscope_frontend/js/map/packing.js";
import { blockBeside, rowNeighbour } from "../../vramscope_frontend/js/map/walk.js";
import { mapOf, MIB } from "./made-map.js";

const pack = (/** @type {import("./made-map.js").Made[]} */ made, row = 8, packing = new Packing(), order = /** @type {"size" | "address"} */ ("size")) => {
  packing.update(mapOf(made).segments, row * MIB, 0, order);
  return packing;
};
const starts = (/** @type {Packing} */ packing) => Object.fromEntries([...packing.starts].map(([address, start]) => [address, start / MIB]));

test("rows are as wide as the largest segment, at most 256 MiB, wider only for the eye", () => {
  const sized = (/** @type {number[]} */ ...sizes) => sizes.map((size) => /** @type {any} */ ({ size: size * MIB }));
  assert.equal(rowBytesFor(sized(20, 2)), 20 * MIB);
  assert.equal(rowBytesFor(sized(900, 2)), 256 * MIB);
  assert.equal(rowBytesFor(sized(...Array(400).fill(128))), 1024 * MIB);
  assert.equal(rowBytesFor([]), 2 * MIB);
});

test("largest first, each where it first fits; what is longer than a row wraps", () => {
  const packing = pack([{ address: 1, blocks: "a3" }, { address: 2, blocks: "a5" }, { address: 3, blocks: "a12" }, { address: 4, blocks: "a4" }]);
  assert.deepEqual(starts(packing), { 3: 0, 4: 12, 2: 16, 1: 21 });
  assert.equal(packing.rows, 3);
});

test("by address they keep their order", () => {
  const packing = pack([{ address: 4, blocks: "a1" }, { address: 2, blocks: "a7" }, { address: 3, blocks: "a2" }], 8, new Packing(), "address");
  assert.deepEqual(starts(packing), { 2: 0, 3: 8, 4: 10 });
});

test("a segment keeps its place while it is alive; a new one goes where there is room", () => {
  const packing = pack([{ address: 1, blocks: "a6" }, { address: 2, blocks: "a4" }, { address: 3, blocks: "a2" }]);
  const before = starts(packing);
  pack([{ address: 1, blocks: "a3 f3" }, { address: 3, blocks: "a2" }, { address: 9, blocks: "a8" }], 8, packing);
  assert.deepEqual([starts(packing)[1], starts(packing)[3]], [before[1], before[3]]);
  assert.equal(starts(packing)[9] % 8, 0);
  packing.sort();
  pack([{ address: 1, blocks: "a3 f3" }, { address: 3, blocks: "a2" }, { address: 9, blocks: "a8" }], 8, packing);
  assert.equal(starts(packing)[9], 0);
});

test("with too many gaps everything is placed anew", () => {
  const many = Array.from({ length: 40 }, (_, i) => ({ address: i + 1, blocks: "a8" }));
  const packing = pack(many);
  pack(many.slice(36), 8, packing);
  assert.equal(packing.rows, 4);
});

test("every place on the rows leads to the block that is drawn there", () => {
  const packing = pack([{ address: 1, blocks: "a1 f2 a1 a8" }, { address: 2, blocks: "a3 f1" }]);
  for (const { segment, start } of packing.placed) {
    segment.offsets.forEach((offset, index) => {
      for (const at of [offset, offset + segment.sizes[index] - 1]) {
        const found = packing.blockAt(start + at);
        assert.deepEqual([found?.segment.address, found?.index], [segment.address, index]);
      }
    });
  }
  assert.equal(packing.blockAt(-1), null);
  assert.equal(packing.blockAt(packing.rows * 8 * MIB), null);
});

test("arrows go from block to block, over the ends of segments, and from row to row", () => {
  const packing = pack([{ address: 1, blocks: "a4 f4" }, { address: 2, blocks: "a2 f5" }]);
  const say = (/** @type {any} */ place) => place && [place.segment.address, place.index];
  const first = blockBeside(packing, null, 1);
  assert.deepEqual(say(first), [1, 0]);
  const second = blockBeside(packing, first, 1);
  const third = blockBeside(packing, second, 1);
  assert.deepEqual([say(second), say(third)], [[1, 1], [2, 0]]);
  assert.deepEqual(say(blockBeside(packing, third, -1)), [1, 1]);
  assert.equal(blockBeside(packing, first, -1), null);
  assert.deepEqual(say(blockBeside(packing, null, -1)), [2, 1]);
  assert.deepEqual(say(rowNeighbour(packing, first, 1)), [2, 1]);
  assert.deepEqual(say(rowNeighbour(packing, second, 1)), [2, 1]);
  assert.deepEqual(say(rowNeighbour(packing, third, -1)), [1, 0]);
  assert.equal(rowNeighbour(packing, third, 1), null);
  assert.equal(blockBeside(pack([]), null, 1), null);
});
