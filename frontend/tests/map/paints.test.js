import assert from "node:assert/strict";
import test from "node:test";
import { Palette } from "../../vramscope_frontend/js/map/paints.js";
import { mapOf } from "./made-map.js";

const names = (/** @type {Palette} */ palette, /** @type {any} */ map) => palette.legend(map.segments.values()).map((paint) => paint.name);
const MADE = [
  { address: 1, blocks: "a1 a2 f1 p1", categories: [1, 0], stacks: [0, 1], firstSteps: [-1, 9] },
  { address: 2e9, blocks: "a4 f1", flags: 5, stream: 3, categories: [3], stacks: [0], firstSteps: [0] },
  { address: 3e9, blocks: "f2" },
];
const map = mapOf(MADE, { texts: ["train.py:3 step\nmain.py:9 main", "train.py:5 loss"] });

test("by category, with hatches for what is free and for what waits", () => {
  assert.deepEqual(names(new Palette(map, "category"), map), ["Activations and the rest", "Parameters", "Optimizer state", "Free between live blocks", "Free, could be returned", "Free in a private pool", "Pending free"]);
});

test("by stack, the innermost line names it", () => {
  assert.deepEqual(names(new Palette(map, "stack"), map).slice(0, 2), ["train.py:3 step", "train.py:5 loss"]);
});

test("by age, in steps, and what was there at the first look apart", () => {
  const palette = new Palette(map, "age");
  const [first, second] = [...map.segments.values()];
  assert.deepEqual([palette.paintOf(first, 0), palette.paintOf(first, 1), palette.paintOf(second, 0)].map((paint) => palette.paints[paint].name), ["Since before the first look", "Up to 10 steps", "Up to 10 steps"]);
});

test("by stream and by pool", () => {
  assert.deepEqual(names(new Palette(map, "stream"), map).slice(0, 2), ["Stream 0x3", "Default stream"]);
  assert.deepEqual(names(new Palette(map, "pool"), map).slice(0, 2), ["Private pool 0.1", "Large pool"]);
});

test("what is painted of a segment covers it without a gap", () => {
  for (const by of /** @type {const} */ (["category", "stack", "age", "stream", "pool"])) {
    const palette = new Palette(map, by);
    for (const segment of map.segments.values()) {
      const { start, size } = palette.runs(segment);
      let at = 0;
      start.forEach((from, i) => {
        assert.equal(from, at);
        at += size[i];
      });
      assert.equal(at, segment.size);
      assert.equal(palette.runs(segment), palette.runs(segment), "made once");
    }
  }
});
