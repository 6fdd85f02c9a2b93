import assert from "node:assert/strict";
import test from "node:test";
import { underPointer } from "../../vramscope_frontend/js/views/readout.js";

/** @type {any} */
const reading = { end: { layers: { held: 10, within: 5, cached: 3 }, free: 2 } };

test("the layer that covers the height is named, above all of them what is free", () => {
  const at = (/** @type {number | null} */ height_bytes) => underPointer({ cursor: 1, reading, model: /** @type {any} */ ({ layers: {} }), height_bytes });
  assert.deepEqual([at(9)?.name, at(12)?.bytes, at(17)?.name, at(18.5)?.name], ["Held at step end", 5, "Cached, returnable", "Free on the device"]);
  assert.equal(at(null), null);
});

test("of lines and ranks the nearest is named", () => {
  const envelope = { least: [1, 2], median: [3, 4], most: [9, 8], worst: [9, 7.5], worstRank: 3 };
  const model = /** @type {any} */ ({ layers: null, lines: null, envelope, x: [0, 10] });
  assert.equal(underPointer({ cursor: 12, reading: null, model, height_bytes: 7 })?.name, "Rank 3");
  assert.equal(underPointer({ cursor: 4, reading: null, model, height_bytes: 0 })?.name, "Least of all ranks");
});
