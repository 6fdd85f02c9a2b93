import assert from "node:assert/strict";
import test from "node:test";
import { pickRows, pointsWanted, rangeToRefine } from "../vramscope_frontend/js/downsampling.js";
import { appendRows, emptyTable } from "../vramscope_frontend/js/series.js";

const long = () => {
  const made = emptyTable(["one", "two"]);
  const xs = Array.from({ length: 10_000 }, (_, i) => i);
  const spike = (/** @type {number} */ at) => xs.map((x) => (x === at ? 885 : 750));
  appendRows(made, xs, xs, { one: spike(4357), two: spike(4358) }, Infinity);
  return made;
};

test("the highest row of a bin is kept, of both columns, and rows stay in order", () => {
  const picked = pickRows(long(), 0, 9999, "one", "two");
  assert.ok(picked.length <= 1010);
  assert.ok(picked.includes(4357) && picked.includes(4358));
  assert.ok(picked.every((index, i) => i === 0 || index > picked[i - 1]));
  assert.equal(picked.at(-1), 9999);
});

test("few rows are drawn as they are", () => {
  assert.deepEqual(pickRows(long(), 10, 14, "one", "two"), [9, 10, 11, 12, 13, 14]);
});

test("bins do not move when the range slides", () => {
  const before = new Set(pickRows(long(), 100, 8100, "one", "two").slice(2, -2));
  const after = pickRows(long(), 104, 8104, "one", "two").slice(2, -2);
  const moved = after.filter((index) => !before.has(index) && index < 8100);
  assert.ok(moved.length < 5, `${moved.length} rows changed`);
});

test("points follow the width and have an upper bound", () => {
  assert.equal(pointsWanted(640), 640);
  assert.equal(pointsWanted(9000), 2000);
});

test("a range is refined where the rows at hand are too coarse for it", () => {
  const none = { coarseBinWidth: 10, detail: null, recentFrom: Infinity };
  assert.deepEqual(rangeToRefine(none, 0, 1000, 600), { x0: 0, x1: 1000 });
  assert.equal(rangeToRefine(none, 0, 10_000, 600), null);
  assert.equal(rangeToRefine({ ...none, coarseBinWidth: 0 }, 0, 10, 600), null);
});

test("an answer that is coarser than wanted is not asked for again, a closer look is", () => {
  const at_hand = { coarseBinWidth: 10, detail: { x0: 0, x1: 120, binWidth: 1 }, recentFrom: Infinity };
  assert.equal(rangeToRefine(at_hand, 10, 110, 600), null);
  assert.deepEqual(rangeToRefine(at_hand, 10, 30, 600), { x0: 10, x1: 30 });
});

test("what is at hand is not asked for again", () => {
  const detail = { x0: 0, x1: 1100, binWidth: 0 };
  assert.equal(rangeToRefine({ coarseBinWidth: 10, detail, recentFrom: Infinity }, 0, 1000, 600), null);
  assert.equal(rangeToRefine({ coarseBinWidth: 10, detail: null, recentFrom: 500 }, 500, 1000, 600), null);
  assert.deepEqual(rangeToRefine({ coarseBinWidth: 10, detail: null, recentFrom: 500 }, 0, 1000, 600), { x0: 0, x1: 500 });
});
