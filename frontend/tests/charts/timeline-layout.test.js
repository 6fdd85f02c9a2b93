import assert from "node:assert/strict";
import test from "node:test";
import { timelineLayout } from "../../vramscope_frontend/js/charts/timeline-layout.js";

const GIB = 2 ** 30;
/** @type {any} */
const tokens = { ink: "#ffffff" };
const labelOf = (/** @type {number} */ used) => {
  /** @type {any} */
  const model = { xKind: "step", range: [0, 10], origin_ns: 0, unit: { name: "GiB", bytes: GIB }, limit: { bytes: 8 * GIB, label: "device", dashed: false }, highest: used, floor: 0, parts: [], x: [], columns: { end: {}, peak: { used } }, strips: { stepTime: null, allocations: null }, freeText: { value: "1.0", unit: "free" }, envelope: null, emulated: false };
  return timelineLayout(tokens, model, 900, 540).annotations?.find((one) => one.text?.includes("free"));
};

test("what is free is written below the limit, or above it where the column leaves no room", () => {
  assert.equal(labelOf(6 * GIB)?.yanchor, "top");
  assert.equal(labelOf(7.9 * GIB)?.yanchor, "bottom");
});

test("the name at the end of a low line lies above the word in the corner", () => {
  const shiftOf = (/** @type {number} */ end, emulated = true) => {
    /** @type {any} */
    const model = { xKind: "time", range: [0, 10], origin_ns: 0, unit: { name: "GiB", bytes: GIB }, limit: { bytes: 8 * GIB, label: "device", dashed: false }, highest: end, floor: 0, parts: [], x: [], columns: null, strips: { stepTime: null, allocations: null }, freeText: null, envelope: { worst: [end, NaN], worstRank: 1 }, emulated };
    return timelineLayout(tokens, model, 900, 540).annotations?.find((one) => one.text === "rank 1")?.yshift ?? 0;
  };
  assert.ok(shiftOf(0) >= 30);
  assert.equal(shiftOf(4 * GIB), 2);
  assert.equal(shiftOf(0, false), 2);
});

test("an axis that shows the moving part begins just below it and says so", () => {
  /** @type {any} */
  const model = { xKind: "step", range: [0, 10], origin_ns: 0, unit: { name: "GiB", bytes: GIB }, limit: { bytes: 100 * GIB, label: "device", dashed: false }, highest: 95 * GIB, floor: 86 * GIB, parts: [], x: [], columns: null, strips: { stepTime: null, allocations: null }, freeText: null, envelope: null, emulated: false };
  const layout = timelineLayout(tokens, model, 900, 540);
  assert.deepEqual(layout.yaxis?.range?.map((value) => Math.round(value)), [86, 100]);
  assert.ok(layout.annotations?.some((one) => one.text === "constant below: <b>86.0 GiB</b>"));
  assert.ok(layout.shapes?.some((one) => one.type === "path"));
  assert.ok(/** @type {number[]} */ (layout.yaxis?.tickvals).every((value) => value >= 86));
});
