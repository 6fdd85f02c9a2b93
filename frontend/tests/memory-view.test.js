import assert from "node:assert/strict";
import test from "node:test";
import * as moves from "../vramscope_frontend/js/memory-view.js";
import { appendRows, emptyTable } from "../vramscope_frontend/js/series.js";

const view = (query = "", ranks = 1) => moves.viewFromQuery(new URLSearchParams(query), ranks);
const steps = () => {
  const made = emptyTable([]);
  const xs = Array.from({ length: 2000 }, (_, i) => i);
  appendRows(made, xs, xs.map((x) => x / 2), {}, Infinity);
  return made;
};
const BOUNDS = { first: 0, last: 1999 };

test("a link shows exactly the view it was made from", () => {
  const query = "view=lines&y=full&x=time&window=run&from=10.0&to=20.0&at=12.5";
  const back = moves.queryFromView(view(query), 1);
  assert.equal(new URLSearchParams(Object.entries(back).flatMap(([name, value]) => (value === null ? [] : [[name, value]]))).toString(), query);
  assert.deepEqual(Object.values(moves.queryFromView(view(), 1)).filter((value) => value !== null), []);
});

test("several ranks start together, nonsense is ignored", () => {
  assert.equal(view("", 8).rank, null);
  assert.equal(view("rank=3", 8).rank, 3);
  assert.deepEqual([view("device=1").device, view("device=x").device, view("").device], [1, null, null]);
  assert.equal(moves.queryFromView(view("device=1"), 1).device, "1");
  assert.deepEqual([view("window=what").window, view("y=up").y], [null, null]);
  assert.equal(view("from=20&to=10&window=what&rank=-1").range, null);
});

test("what the reader leaves open is settled by what the run needs", () => {
  const settle = (/** @type {string} */ query, /** @type {any} */ y, /** @type {any} */ window) => {
    const one = moves.settled(view(query), { y, window });
    return [one.y, one.window];
  };
  assert.deepEqual(settle("", "moving", "forecast"), ["moving", "forecast"]);
  assert.deepEqual(settle("y=full&window=10m", "moving", "forecast"), ["full", "10m"]);
  // A link to a forecast that is no more shows the run.
  assert.deepEqual(settle("window=forecast", "full", "10m"), ["full", "run"]);
});

test("following shows the newest minutes, in steps as in time", () => {
  assert.deepEqual(moves.shownRange({ ...view(), window: "2m" }, steps()), [1759, 1999]);
  assert.deepEqual(moves.shownRange({ ...view(), window: "run" }, steps()), [0, 1999]);
  assert.deepEqual(moves.shownRange({ ...view(), window: "10m" }, steps(), 2100), [799, 2100]);
  assert.deepEqual(moves.shownRange(view(), emptyTable([])), [0, 10]);
});

test("zoom stays inside the run, keeps a least width, and goes back step by step", () => {
  let now = moves.zoomTo(view(), [100, 500], BOUNDS);
  now = moves.zoomTo(now, [200, 200.1], BOUNDS);
  assert.deepEqual(now.range, [199.55, 200.55]);
  now = moves.back(now);
  assert.deepEqual(now.range, [100, 500]);
  now = moves.back(now);
  assert.equal(now.range, null);
  assert.deepEqual(moves.zoomTo(view(), [-500, 100], BOUNDS).range, [0, 100]);
});

test("the wheel keeps the point under the pointer, and is one step back", () => {
  let now = moves.zoomAround(view(), [0, 1000], 0.5, 250, BOUNDS);
  assert.deepEqual(now.range, [125, 625]);
  now = moves.zoomAround(now, /** @type {[number, number]} */ (now.range), 0.5, 250, BOUNDS);
  assert.equal(moves.back(now).range, null);
});

test("pan keeps the width and stops at the ends", () => {
  const zoomed = moves.zoomTo(view(), [100, 200], BOUNDS);
  assert.deepEqual(moves.panBy(zoomed, [100, 200], 50, BOUNDS).range, [150, 250]);
  assert.deepEqual(moves.panBy(zoomed, [100, 200], -500, BOUNDS).range, [0, 100]);
  assert.deepEqual(moves.panBy(zoomed, [100, 200], 9999, BOUNDS).range, [1899, 1999]);
});

test("the other axis shows the same stretch", () => {
  const zoomed = moves.zoomTo(view(), [100, 200], BOUNDS);
  const timed = moves.changeAxis(zoomed, "time", steps());
  assert.deepEqual(timed.range, [50, 100]);
  assert.deepEqual(moves.changeAxis(timed, "step", steps()).range, [100, 200]);
});
