import assert from "node:assert/strict";
import test from "node:test";
import * as series from "../vramscope_frontend/js/series.js";

const table = (/** @type {number[]} */ xs) => {
  const made = series.emptyTable(["a"]);
  series.appendRows(made, xs, xs, { a: xs.map((x) => x * 10) }, Infinity);
  return made;
};

test("rows that were there already are not added twice", () => {
  const made = table([1, 2, 3]);
  assert.equal(series.appendRows(made, [2, 3, 4], [2, 3, 4], { a: [0, 0, 40] }, Infinity), 1);
  assert.deepEqual(made.columns.a, [10, 20, 30, 40]);
});

test("beyond the capacity the oldest rows go", () => {
  const made = series.emptyTable(["a"]);
  const xs = Array.from({ length: 130 }, (_, i) => i);
  series.appendRows(made, xs, xs, { a: xs }, 100);
  assert.equal(made.x.length, 100);
  assert.equal(made.x[0], 30);
  assert.equal(made.columns.a[0], 30);
});

test("null and an absent column are not known, not zero", () => {
  const made = series.emptyTable(["a", "b"]);
  series.appendRows(made, [1], [1], { a: [null] }, Infinity);
  assert.ok(Number.isNaN(made.columns.a[0]));
  assert.ok(Number.isNaN(made.columns.b[0]));
  assert.deepEqual(series.rowAt(made, 0), {});
});

test("a finer part replaces exactly what it covers", () => {
  const joined = series.overlay(table([0, 10, 20, 30]), table([10, 12, 14, 20]));
  assert.deepEqual(joined.x, [0, 10, 12, 14, 20, 30]);
  assert.deepEqual(joined.columns.a, [0, 100, 120, 140, 200, 300]);
  assert.deepEqual(series.overlay(table([1]), table([2])).x, [1, 2]);
  assert.deepEqual(series.overlay(series.emptyTable(["a"]), table([2])).x, [2]);
});

test("a range takes the row in force at its left edge along", () => {
  assert.deepEqual(series.rowsBetween(table([0, 10, 20, 30]), 12, 20), [1, 3]);
  assert.equal(series.indexAt([0, 10, 20], 19), 1);
  assert.equal(series.indexAt([0, 10, 20], 20), 2);
  assert.equal(series.indexAt([0, 10, 20], -1), -1);
});

test("steps are as measured until there are more than were asked for", () => {
  const payload = { step: [1, 2, 3], time_ns: [1e9, 2e9, 3e9], columns: { a: [1, 2, 3] } };
  assert.equal(series.tableFromSteps(payload, ["a"], 0, 100).binWidth, 0);
  const binned = { step: [5, 15, 25], time_ns: [5e9, 15e9, 25e9], columns: { a: [1, 2, 3] } };
  assert.equal(series.tableFromSteps(binned, ["a"], 0, 3).binWidth, 7);
});

test("bins keep their highest value", () => {
  const made = series.tableFromSeries({ resolution_ms: 1000, rank: 0, time_ns: [5e9], columns: { a: { min: [1], mean: [2], max: [9] } } }, ["a"], 4e9);
  assert.deepEqual(made.columns.a, [9]);
  assert.deepEqual(made.x, [1]);
  assert.equal(made.binWidth, 1);
});

test("time and step convert into each other between rows", () => {
  const made = series.emptyTable([]);
  series.appendRows(made, [100, 200], [10, 20], {}, Infinity);
  assert.equal(series.xAtTime(made, 15), 150);
  assert.equal(series.xAtTime(made, 5), 100);
  assert.equal(series.xAtTime(made, 99), 200);
});
