import assert from "node:assert/strict";
import test from "node:test";
import { laterFrom, usedBeside } from "../../vramscope_frontend/js/views/receipt.js";

test("twenty steps later: the last row of the range, and step times on both sides", () => {
  const step = [80, 99, 100, 101, 110, 120];
  const later = laterFrom({ step, time_ns: step, columns: { "reserved_bytes.all.current": [9, 9, 9, 5, 7, 8], "step.duration_us": [1e6, 1e6, 4e6, 3e6, 2e6, 2e6] } }, 100);
  assert.deepEqual([later.reserved, later.used, later.before_s, later.after_s, later.later_s], [8, null, 1, 3, 2]);
});

test("what is used outside of PyTorch is taken from the sample, and unknown stays unknown", () => {
  assert.equal(usedBeside(8, 10, 7), 11);
  assert.equal(usedBeside(8, null, 7), null);
});
