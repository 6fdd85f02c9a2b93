import assert from "node:assert/strict";
import test from "node:test";
import { timelineLayout } from "../../vramscope_frontend/js/charts/timeline-layout.js";

const GIB = 2 ** 30;
/** @type {any} */
const tokens = {};
const labelOf = (/** @type {number} */ used) => {
  /** @type {any} */
  const model = { xKind: "step", range: [0, 10], origin_ns: 0, unit: { name: "GiB", bytes: GIB }, limit: { bytes: 8 * GIB, label: "device", dashed: false }, highest: used, floor: 0, parts: [], x: [], columns: { end: {}, peak: { used } }, strips: { stepTime: null, allocations: null }, freeText: { value: "1.0", unit: "free" }, envelope: null, emulated: false };
  return timelineLayout(tokens, model, 900, 540).annotations?.find((one) => one.text?.includes("free"));
};

test("what is free is written below the limit, or above it where the column leaves no room", () => {
  assert.equal(labelOf(6 * GIB)?.yanchor, "top");
  assert.equal(labelOf(7.9 * GIB)?.yanchor, "bottom");
});
