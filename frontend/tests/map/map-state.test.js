import assert from "node:assert/strict";
import test from "node:test";
import { MapState } from "../../vramscope_frontend/js/map/map-state.js";
import { frame, mapOf, MIB } from "./made-map.js";

const plain = (/** @type {MapState} */ map) => [...map.segments.values()].map((one) => [one.address, [...one.sizes], [...one.states]]).sort((a, b) => Number(a[0]) - Number(b[0]));

test("blocks lie one after another in their segment", () => {
  const map = mapOf([{ address: 100, blocks: "a1 f2 p1" }, { address: 999, blocks: "f4", flags: 7, stream: 5 }]);
  const [first, second] = [...map.segments.values()];
  assert.deepEqual([...first.offsets], [0, MIB, 3 * MIB]);
  assert.deepEqual([first.isLarge, first.isExpandable, first.isPrivate, first.isLive], [true, false, false, true]);
  assert.deepEqual([second.isLarge, second.isExpandable, second.isPrivate, second.isLive, second.stream], [true, true, true, false, 5]);
  assert.equal(second.pool, "0.1");
});

test("a delta replaces the segments that it names and takes those that are gone", () => {
  const map = mapOf([{ address: 100, blocks: "a1 f1" }, { address: 200, blocks: "a2" }, { address: 300, blocks: "f3" }], { texts: ["w"] });
  assert.ok(map.take(frame([{ address: 200, blocks: "f1 a1" }], { number: 2, base: 1, gone: [300], first_text: 1, texts: ["v"] })));
  assert.deepEqual(plain(map), [[100, [MIB, MIB], [1, 0]], [200, [MIB, MIB], [0, 1]]]);
  assert.deepEqual(map.texts, ["w", "v"]);
  assert.equal(map.text(1), "v");
  assert.equal(map.text(-1), "");
});

test("a delta whose base never came changes nothing and says so", () => {
  const map = mapOf([{ address: 100, blocks: "a1" }]);
  for (const more of [{ number: 3, base: 2 }, { number: 2, base: 1, first_text: 4 }]) {
    assert.equal(map.take(frame([{ address: 100, blocks: "f1" }], more)), false);
    assert.deepEqual(plain(map), [[100, [MIB], [1]]]);
  }
});

test("a whole frame begins anew", () => {
  const map = mapOf([{ address: 100, blocks: "a1" }], { texts: ["w"] });
  assert.ok(map.take(frame([{ address: 200, blocks: "f1" }], { number: 1, texts: ["x"] })));
  assert.deepEqual(plain(map), [[200, [MIB], [0]]]);
  assert.deepEqual(map.texts, ["x"]);
});

test("any order of random deltas ends where a whole frame would", () => {
  let seed = 7;
  const random = (/** @type {number} */ below) => (seed = (seed * 48271) % 2147483647) % below;
  const words = () => Array.from({ length: 1 + random(4) }, () => `${"afp"[random(3)]}${1 + random(2)}`).join(" ");
  /** @type {Map<number, string>} */
  const truth = new Map();
  const map = new MapState();
  for (let number = 1; number <= 200; number++) {
    const gone = [...truth.keys()].filter(() => random(5) === 0);
    for (const address of gone) truth.delete(address);
    const changed = Array.from({ length: random(4) }, () => ({ address: 1000 * (1 + random(8)), blocks: words() })).filter((one, i, all) => all.findIndex(({ address }) => address === one.address) === i);
    for (const { address, blocks } of changed) truth.set(address, blocks);
    assert.ok(map.take(frame(changed, { number, base: number - 1, gone })));
    assert.deepEqual(plain(map), plain(mapOf([...truth].map(([address, blocks]) => ({ address, blocks })))));
  }
});
