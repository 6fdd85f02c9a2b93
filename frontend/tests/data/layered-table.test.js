import assert from "node:assert/strict";
import test from "node:test";
import { LayeredTable } from "../../vramscope_frontend/js/data/layered-table.js";
import { appendRows, emptyTable } from "../../vramscope_frontend/js/series.js";

const rows = (/** @type {number[]} */ xs, binWidth = 0) => {
  const made = emptyTable(["a"]);
  appendRows(made, xs, xs, { a: xs }, Infinity);
  made.binWidth = binWidth;
  return made;
};

test("the finest rows at hand are shown, and live rows that came during a fetch stay", () => {
  const table = new LayeredTable(["a"], 100);
  table.addLive([101, 102], [101, 102], { a: [101, 102] });
  table.setCoarse(rows([0, 50, 100], 50));
  table.setDetail(40, 60, rows([40, 45, 50, 55, 60], 5));
  assert.deepEqual(table.view(0).x, [0, 40, 45, 50, 55, 60, 100, 101, 102]);
  table.setRecent(rows([98, 99, 100, 101]));
  assert.deepEqual(table.view(98).x, [98, 99, 100, 101, 102]);
});

test("what was missed during a cut is not bridged", () => {
  const table = new LayeredTable(["a"], 100);
  table.addLive([1, 2], [1, 2], { a: [1, 2] });
  table.forgetRecent();
  table.addLive([9, 10], [9, 10], { a: [9, 10] });
  table.setCoarse(rows([1, 2, 5, 6]));
  assert.deepEqual(table.whole().x, [1, 2, 5, 6, 9, 10]);
});

test("a hole between coarse and newest rows is noticed", () => {
  const table = new LayeredTable(["a"], 100);
  table.setCoarse(rows([0, 10, 20], 10));
  table.addLive([100, 101], [100, 101], { a: [1, 1] });
  assert.equal(table.isTorn, true);
});

test("rows between the history and the first live row take their place", () => {
  const table = new LayeredTable(["a"], 100);
  table.setCoarse(rows([1, 2, 3]));
  table.addLive([7, 8], [7, 8], { a: [7, 8] });
  table.close(rows([3, 4, 5, 6, 7]));
  assert.deepEqual(table.whole().x, [1, 2, 3, 4, 5, 6, 7, 8]);
  table.close(rows([2, 8], 6));
  assert.deepEqual(table.whole().x, [1, 2, 3, 4, 5, 6, 7, 8], "rolled-up rows hold no moment");
});
