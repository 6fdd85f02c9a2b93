import assert from "node:assert/strict";
import test from "node:test";
import * as numbering from "../vramscope_frontend/js/numbering.js";
import { stepTicks } from "../vramscope_frontend/js/charts/ticks.js";
import { emptyTable, takeRows, tableFromSteps } from "../vramscope_frontend/js/series.js";

/** Steps 1 to 412, then anew 1 to 80, then on from a checkpoint at 60. */
const lives = [[0, 1, 412, 0], [1, 1, 80, 412], [2, 61, 100, 432]];
const rows = lives.flatMap(([life, first, last]) => Array.from({ length: last - first + 1 }, (_, i) => ({ life, step: first + i })));
/** @type {any} */
const payload = { step: rows.map((row) => row.step), life: rows.map((row) => row.life), step_offsets: lives.map((one) => one[3]), time_ns: rows.map((_, i) => i * 1e9), columns: { a: rows.map((_, i) => i) } };
const table = tableFromSteps(payload, ["a"], 0, 2000);

test("every row of every life has its place, and its own number", () => {
  assert.equal(table.x.length, rows.length);
  assert.deepEqual(table.x, Array.from({ length: rows.length }, (_, i) => i + 1));
  assert.equal(numbering.numberOf(table, 412), 1);
  assert.deepEqual(numbering.stretchesOf(table), [{ x: 1, life: 0, offset: 0 }, { x: 413, life: 1, offset: 412 }, { x: 493, life: 2, offset: 432 }]);
});

test("places become numbers and back; a number that came twice is the newest", () => {
  const stretches = numbering.stretchesOf(table);
  assert.deepEqual([412, 413, 492, 493].map((x) => numbering.numberAt(stretches, x)), [412, 1, 80, 61]);
  assert.equal(numbering.xOfNumber(stretches, 70, 532), 502);
  assert.equal(numbering.xOfNumber(stretches, 30, 532), 442);
  assert.equal(numbering.xOfNumber(stretches, 300, 532), 300);
  assert.equal(numbering.xOfNumber(stretches, 900, 532), 1332);
  assert.equal(numbering.xOfMoment(table, 30, 29.5), 30);
  assert.equal(numbering.xOfMoment(table, 30, 441.5), 442);
});

test("without lives nothing is renumbered", () => {
  const plain = emptyTable(["a"]);
  plain.x.push(5, 6);
  assert.deepEqual(numbering.stretchesOf(plain), []);
  assert.equal(numbering.numberAt([], 5), 5);
  assert.equal(numbering.numberOf(plain, 1), 6);
  assert.equal(numbering.newestLifeFrom(plain), 0);
  assert.ok(numbering.beginsLife(plain, 0) && !numbering.beginsLife(plain, 1));
});

test("the newest life begins where its rows do", () => {
  assert.equal(numbering.newestLifeFrom(table), 492);
  assert.ok(numbering.beginsLife(table, 412));
  assert.ok(!numbering.beginsLife(table, 413));
});

test("a range of the axis is asked for life by life, in their own numbers", () => {
  const stretches = numbering.stretchesOf(table);
  assert.deepEqual(numbering.piecesOf(stretches, 400, 420), [{ life: 0, start: 400, end: null }, { life: 1, start: null, end: 8 }]);
  assert.deepEqual(numbering.piecesOf(stretches, 420, 430), [{ life: 1, start: 8, end: 18 }]);
  assert.deepEqual(numbering.piecesOf(stretches, 500, null), [{ life: 2, start: 68, end: null }]);
  assert.equal(numbering.piecesOf(stretches, null, null).length, 3);
});

test("thinned rows leave no steps between two lives that belong to neither", () => {
  const thin = takeRows(table, [0, 100, 405, 415, 480]);
  const stretches = numbering.stretchesOf(thin);
  assert.equal(stretches[1].x, 407);
  assert.deepEqual(numbering.piecesOf(stretches, 300, 500), [{ life: 0, start: 300, end: null }, { life: 1, start: null, end: 88 }]);
  assert.deepEqual(numbering.piecesOf(stretches, 300, 409), [{ life: 0, start: 300, end: null }]);
});

test("ticks carry the numbers of each life and do not crowd where one ends", () => {
  const { tickvals, ticktext } = stepTicks(0, 532, numbering.stretchesOf(table));
  assert.deepEqual(ticktext, ["100", "200", "300", "400", "100"]);
  assert.deepEqual(tickvals, [100, 200, 300, 400, 532]);
});
