import assert from "node:assert/strict";
import test from "node:test";
import { STEP_DURATION } from "../../vramscope_frontend/js/fields.js";
import { placeRecordingBands, recordingBands } from "../../vramscope_frontend/js/snapshots/recording-bands.js";

const START = 1_000_000;
/** @returns {any} */
const timeline = (changes = {}) => ({ unit: "us", steps: [], start: START, end_x: START + 100_000, scopes: [{ name: "Optimizer.step#AdamW.step", start: START + 80_000, end: START + 90_000 }, { name: "attention", start: START + 10_000, end: START + 10_100 }], ...changes });
/** @returns {any} */
const stretch = (/** @type {string} */ name, /** @type {number} */ from_us, /** @type {number | null} */ to_us) => ({ rank: 0, name, kind: "eval", start_ns: from_us * 1000, end_ns: to_us === null ? null : to_us * 1000, start_step: null, end_step: null, code: 1, count: 1 });

test("phases and recorded scopes are one band, the widest first", () => {
  const bands = recordingBands(timeline(), [stretch("eval", START - 5000, START + 20_000), stretch("eval", 0, 10)], null);
  assert.deepEqual(bands.map((band) => band.name), ["eval", "optimizer", "attention"]);
  assert.match(bands[1].title, /^Optimizer\.step#AdamW\.step, 10 ms$/);
  assert.equal(recordingBands(timeline(), [stretch("eval", START, null)], null)[0].x1, START + 100_000, "one that is still open goes on to the end");
});

test("by the order of events there is no band", () => {
  assert.deepEqual(recordingBands(timeline({ unit: "entry" }), [stretch("eval", 0, null)], null), []);
});

test("a band is cut at the range, is seen however short it is, and named where there is room", () => {
  const bands = recordingBands(timeline(), [stretch("eval", START - 5000, START + 20_000)], null);
  const placed = placeRecordingBands(bands, { left: 50, width: 1000 }, [START, START + 100_000]);
  assert.deepEqual(placed.map((one) => [one.left, one.width, one.label]), [[50, 200, "eval"], [850, 100, "optimizer"], [150, 3, ""]]);
  assert.equal(placeRecordingBands(bands, { left: 50, width: 1000 }, [START + 95_000, START + 100_000]).length, 0);
});

test("a step that was split shows forward and backward, the optimizer where it was recorded", () => {
  const columns = { [STEP_DURATION]: [60_000, 60_000], "part.forward.time_us": [NaN, 20_000], "part.backward.time_us": [NaN, 25_000], "part.optimizer.time_us": [NaN, 9000] };
  const end = START + 90_000;
  /** @type {any} */
  const rows = { x: [1, 2], t: [(end - 60_000) / 1e6, end / 1e6 + 0.0001], columns, binWidth: 0 };
  const recorded = timeline({ steps: [{ x: end, moment: 1, step: 2, ordinal: 1 }] });
  const bands = recordingBands(recorded, [], rows);
  assert.deepEqual(bands.map((band) => [band.name, Math.round(band.x0 - START), Math.round(band.x1 - START)]), [["backward", 56_000, 81_000], ["forward", 36_000, 56_000], ["optimizer", 80_000, 90_000], ["attention", 10_000, 10_100]]);
  assert.equal(recordingBands({ ...recorded, steps: [{ ...recorded.steps[0], x: end - 600_000 }] }, [], rows).length, 2, "rows of other steps tell nothing");
});
