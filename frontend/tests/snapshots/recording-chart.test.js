import assert from "node:assert/strict";
import test from "node:test";
import { placeText, placeTicks } from "../../vramscope_frontend/js/snapshots/recording-chart.js";

test("places are told from where the first view began", () => {
  assert.equal(placeText(1_012_340, 1_000_000, "us"), "12.3 ms");
  assert.equal(placeText(13_500_000, 1_000_000, "us"), "12.5 s");
  assert.equal(placeText(4200, 0, "entry"), "event 4,200");
});

test("ticks are round in milliseconds, seconds or events", () => {
  const ms = placeTicks([1_000_000, 1_060_000], 1_000_000, "us");
  assert.deepEqual(ms.ticktext, ["0 ms", "10 ms", "20 ms", "30 ms", "40 ms", "50 ms", "60 ms"]);
  assert.equal(ms.tickvals[1], 1_010_000);
  assert.equal(placeTicks([0, 70_000_000], 0, "us").ticktext[1], "10 s");
  assert.equal(placeTicks([0, 700], 0, "entry").ticktext[1], "100");
});
