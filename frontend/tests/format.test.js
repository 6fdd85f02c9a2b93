import assert from "node:assert/strict";
import test from "node:test";
import * as format from "../vramscope_frontend/js/format.js";

const { GIB, MIB } = format;

test("sizes take the unit that suits them, unknown is a dash", () => {
  assert.equal(format.sizeText(133_143_986_176), "124.0 GiB");
  assert.equal(format.sizeText(205 * MIB), "205 MiB");
  assert.equal(format.sizeText(3.5 * MIB), "3.5 MiB");
  assert.equal(format.sizeText(512 * 1024), "512 KiB");
  assert.equal(format.sizeText(null), "–");
  assert.equal(format.sizeText(21.27 * GIB, 2), "21.27 GiB");
});

test("exact bytes carry thousands commas and never invent a zero", () => {
  assert.equal(format.exactBytes(133_143_986_176), "133,143,986,176 bytes");
  assert.equal(format.exactBytes(null), "not known");
  assert.equal(format.exactBytes(NaN), "not known");
});

test("changes have a sign, except when they round to zero", () => {
  assert.equal(format.mibPerStep(3.1 * MIB), "+3.1");
  assert.equal(format.mibPerStep(-0.01 * MIB), "0.0");
});

test("part and whole share one unit", () => {
  assert.equal(format.ofText(113.6 * GIB, 139.8 * GIB), "113.6 of 139.8 GiB");
  assert.equal(format.ofText(0.5 * GIB, 8 * GIB), "0.5 of 8.0 GiB");
  assert.equal(format.ofText(328 * MIB, GIB), "328 of 1,024 MiB");
  assert.equal(format.tableUnit(139.8 * GIB).name, "GiB");
  assert.equal(format.tableUnit(GIB).name, "MiB");
});

test("percent: integer, one decimal below ten", () => {
  assert.equal(format.percent(0.187), "19\u2009%");
  assert.equal(format.percent(0.0136), "1.4\u2009%");
});

test("durations change their unit and never claim false precision", () => {
  assert.equal(format.duration(0.468), "468 ms");
  assert.equal(format.duration(0.0042), "4.2 ms");
  assert.equal(format.duration(12.34), "12.3 s");
  assert.equal(format.duration(2280), "38 min");
  assert.equal(format.duration(8400), "2 h 20 min");
  assert.equal(format.duration(187_200), "2 d 04 h");
  assert.equal(format.age(81.9), "81 s");
});

test("days are told by the reader's midnight", () => {
  const now = new Date(2026, 10, 29, 9, 0).getTime() * 1e6;
  const at = (/** @type {number[]} */ ...parts) => new Date(parts[0], parts[1], parts[2], parts[3], parts[4]).getTime() * 1e6;
  assert.equal(format.day(at(2026, 10, 29, 0, 5), now), "today 00:05");
  assert.equal(format.day(at(2026, 10, 28, 16, 20), now), "yesterday 16:20");
  assert.match(format.day(at(2026, 10, 26, 9, 58), now), /^Thu 09:58$/);
});

test("ranks are named, counted, or all", () => {
  assert.equal(format.ranksText([0], 1), "rank 0");
  assert.equal(format.ranksText([0, 3], 8), "ranks 0 and 3");
  assert.equal(format.ranksText([0, 1], 2), "all 2 ranks");
});
