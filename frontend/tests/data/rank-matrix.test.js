import assert from "node:assert/strict";
import test from "node:test";
import { envelope, outliers, RankMatrix } from "../../vramscope_frontend/js/data/rank-matrix.js";

test("a bin keeps its highest value, and bins widen instead of growing without end", () => {
  const matrix = new RankMatrix(1);
  for (let t = 0; t < 2000; t++) matrix.add(0, t, t === 777 ? 99 : 10);
  assert.ok(matrix.binCount <= 480);
  assert.equal(matrix.rows.get(0)?.peak, 99);
  assert.equal(Math.max(...(matrix.picture(100).used.get(0) ?? [])), 99);
  assert.ok((matrix.picture(100).t.length) <= 100);
});

test("a rolled-up value fills its whole stretch", () => {
  const matrix = new RankMatrix(1);
  matrix.add(0, 0, 5, 4);
  matrix.add(0, 4, 7, 4);
  assert.deepEqual(matrix.rows.get(0)?.bins, [5, 5, 5, 5, 7, 7, 7, 7]);
});

test("unknown use adds nothing", () => {
  const matrix = new RankMatrix(1);
  matrix.add(0, 1, null);
  assert.equal(matrix.rows.size, 0);
});

test("the rank that is far below the others stands out, an even spread has none", () => {
  const ranks = (/** @type {number[]} */ frees) => frees.map((free, rank) => ({ rank, free }));
  assert.deepEqual([...outliers(ranks([10, 10.1, 9.9, 10, 1.4, 10.2]))], [4]);
  assert.deepEqual([...outliers(ranks([6, 7, 8, 9, 10, 11]))], []);
  assert.deepEqual([...outliers(ranks([1, 9]))], []);
});

test("ranks that differ by one bite of the cache do not stand out", () => {
  const ranks = Array.from({ length: 64 }, (_, rank) => ({ rank, free: rank % 4 === 0 ? 24.2 : 26.2, limit: 139.8 }));
  assert.deepEqual([...outliers(ranks)], []);
  assert.deepEqual([...outliers(ranks.map((one) => (one.rank === 41 ? { ...one, free: 20 } : one)))], [41]);
});

test("the envelope has least, median and most of each bin", () => {
  const bounds = envelope(new Map([[0, [1, 5]], [1, [2, NaN]], [2, [3, 7]]]));
  assert.deepEqual(bounds, { least: [1, 5], median: [2, 7], most: [3, 7] });
});
