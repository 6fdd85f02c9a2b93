import assert from "node:assert/strict";
import test from "node:test";
import { blockLine, kindOf } from "../../vramscope_frontend/js/map/cards.js";
import { mapOf } from "./made-map.js";

test("a block in one line, for a label and for a screen reader", () => {
  const map = mapOf([{ address: 1, blocks: "a2 f1 p1 a1", categories: [1], owners: [0], stacks: [-1, -1, -1, 1] }, { address: 9e9, blocks: "f4" }, { address: 8e9, blocks: "f4", flags: 5 }], { texts: ["fc.weight", "train.py:3 step\nmain.py:1 main"] });
  const [segment, free, pool] = [...map.segments.values()];
  assert.equal(blockLine(map, { segment, index: 0 }), "2.0 MiB, Parameters, fc.weight");
  assert.equal(blockLine(map, { segment, index: 3 }), "1.0 MiB, Activations and the rest, train.py:3 step");
  assert.deepEqual([kindOf({ segment, index: 1 }), kindOf({ segment, index: 2 }), kindOf({ segment: free, index: 0 }), kindOf({ segment: pool, index: 0 })], ["Free between live blocks", "Freed, waiting for another stream", "Free, whole segment", "Free in a private pool"]);
});
