import assert from "node:assert/strict";
import test from "node:test";
import { changesOf, valueText } from "../../vramscope_frontend/js/commands/changes.js";

/** @returns {any} */
const command = (/** @type {any} */ before, /** @type {any} */ after) => ({ receipts: { 0: { state: "done", before, after } } });

test("values before and after in words, memory counters left to their own table", () => {
  const rows = changesOf(command({ batch_size: 32, accumulation: 2, reserved_bytes: 5 }, { batch_size: 64, accumulation: 1, reserved_bytes: 6 }));
  assert.deepEqual(rows, [
    { what: "Samples of one rank", before: "32", after: "64", isChanged: true },
    { what: "Passes for each step", before: "2", after: "1", isChanged: true },
  ]);
});

test("settings are nested, and what only one side has is shown", () => {
  const rows = changesOf(command({ settings: { max_split_size_mb: null } }, { settings: { max_split_size_mb: 128, expandable_segments: true } }));
  assert.deepEqual(rows.map((row) => [row.what, row.before, row.after]), [["max_split_size_mb", "not set", "128"], ["expandable_segments", "–", "yes"]]);
});

test("each value as a person reads it", () => {
  assert.deepEqual([valueText("limit_bytes", 2 ** 30), valueText("thresholds", [700, 10]), valueText("fraction", 0.1 + 0.2)], ["1.0 GiB", "700, 10", "0.3"]);
});
