import assert from "node:assert/strict";
import test from "node:test";
import { placeLabels, scaleOf, wedgePoints } from "../../vramscope_frontend/js/charts/evidence-places.js";
import { geometryOf, toPixel } from "../../vramscope_frontend/js/charts/geometry.js";

const GIB = 2 ** 30;
const geometry = geometryOf(900, 540, true, true);
/** @returns {any} */
const model = (changes = {}) => ({
  range: [0, 1000], floor: 0, highest: 60 * GIB, limit: { bytes: 100 * GIB, label: "device", dashed: false },
  x: [0, 100, 200, 300, 400, 500], tops: [40, 44, 48, 52, 56, 60].map((gib) => gib * GIB),
  evidence: { id: "one", severity: "crit", onset: 100, onset_t: 100, onsetText: "step 100", slopeText: "+3.1 MiB/step", layer: "grown", ranks: [0], wedge: { early: 800, late: 900, limit_bytes: null, label: ["full in 26 to 34 min", "step 800 to 900"] } },
  ...changes,
});
const kinds = (/** @type {any} */ one) => placeLabels(one, geometry).map((label) => label.kind);
const hit = (/** @type {any} */ a, /** @type {any} */ b) => a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;

test("the wedge goes from the last peak to the limit, early and late", () => {
  const wedge = wedgePoints(model(), geometry);
  const { limitY, yOf } = scaleOf(model(), geometry);
  assert.deepEqual(wedge?.points.map(([, y]) => Math.round(y)), [Math.round(yOf(60 * GIB)), Math.round(limitY), Math.round(limitY)]);
  assert.ok(wedge && wedge.points[0][0] < wedge.points[1][0] && wedge.points[1][0] < wedge.points[2][0]);
  assert.equal(wedgePoints(model({ range: [0, 500] }), geometry), null);
});

test("labels lie above the data, below the limit, and never on each other", () => {
  /** @type {{x: number[], tops: number[], range: [number, number]}} */
  const one = model();
  const px = (/** @type {number} */ x) => toPixel(geometry, one.range, x);
  const labels = placeLabels(model(), geometry);
  assert.deepEqual(labels.map((label) => label.kind).sort(), ["forecast", "onset", "slope"]);
  const { limitY, yOf } = scaleOf(model(), geometry);
  for (const { box, kind } of labels) {
    assert.ok(box.top >= limitY, kind);
    const under = one.tops.filter((_, i) => px(one.x[i + 1] ?? one.x[i]) >= box.left && px(one.x[i]) <= box.left + box.width);
    assert.ok(kind === "forecast" ? box.left > px(500) : box.top + box.height <= yOf(Math.max(...under)), kind);
  }
  for (const a of labels) for (const b of labels) if (a !== b) assert.ok(!hit(a.box, b.box), `${a.kind} on ${b.kind}`);
});

test("where data leave no room the slope goes over the limit line, beside the limit's own label", () => {
  const full = model({ tops: [97, 98, 98, 98, 99, 99].map((gib) => gib * GIB) });
  const slope = placeLabels(full, geometry).find((label) => label.kind === "slope");
  assert.ok(slope && slope.box.top < scaleOf(full, geometry).limitY);
  assert.ok(slope.box.left > geometry.left + 100);
  assert.ok(!kinds(full).includes("onset"));
});

test("without a forecast, an onset or evidence there is nothing of it", () => {
  assert.deepEqual(kinds(model({ evidence: null })), []);
  assert.deepEqual(kinds(model({ evidence: { ...model().evidence, wedge: null, slopeText: "" } })), ["onset"]);
  assert.ok(!kinds(model({ evidence: { ...model().evidence, onset: -5 } })).includes("onset"));
});
