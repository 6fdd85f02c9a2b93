import assert from "node:assert/strict";
import test from "node:test";
import { cellsBelow, labelOf, pathTo, searchTree } from "../../vramscope_frontend/js/snapshots/icicle-layout.js";

const MIB = 2 ** 20;
/** @type {any} */
const tree = {
  parent: [-1, 0, 0, 1, 1],
  name: ["live bytes", "train", "backward", "forward", "step"],
  place: ["", "train.py:3", "", "model.py:20", "adam.py:5"],
  file: ["", "/a/train.py", "", "/a/model.py", "/site/adam.py"],
  bytes: [100 * MIB, 80 * MIB, 20 * MIB, 60 * MIB, 20 * MIB],
  blocks: [5, 4, 1, 3, 1],
  category: [null, null, "backward", "activations", "optimizer"],
  small: [0, 0, 0, 0, 0],
};

test("a call is as wide as its bytes and lies below its caller", () => {
  const cells = cellsBelow(tree, 0);
  assert.deepEqual(cells.map((cell) => [cell.node, cell.depth, cell.x0.toFixed(2), cell.x1.toFixed(2)]), [[0, 0, "0.00", "1.00"], [1, 1, "0.00", "0.80"], [2, 1, "0.80", "1.00"], [3, 2, "0.00", "0.60"], [4, 2, "0.60", "0.80"]]);
});

test("zoomed in, a call takes the whole width", () => {
  assert.deepEqual(cellsBelow(tree, 1).map((cell) => [cell.node, cell.x1]), [[1, 1], [3, 0.75], [4, 1]]);
  assert.deepEqual(pathTo(tree, 4), [0, 1, 4]);
});

test("a label is whole, or shorter, or cut, or nothing", () => {
  assert.equal(labelOf(tree, 3, 400), "forward  model.py:20  60.0 MiB");
  assert.equal(labelOf(tree, 3, 170), "forward  model.py:20");
  assert.equal(labelOf(tree, 3, 64), "forward");
  assert.equal(labelOf(tree, 3, 45), "forw…");
  assert.equal(labelOf(tree, 3, 30), "");
});

test("a search counts what lies below a match once", () => {
  assert.equal(searchTree(tree, "  "), null);
  const both = searchTree(tree, "/a/");
  assert.deepEqual([[...(both?.found ?? [])], both?.share], [[1, 3], 0.8]);
  assert.equal(searchTree(tree, "ADAM.PY")?.share, 0.2);
  assert.equal(searchTree(tree, "nowhere")?.found.size, 0);
});
