import assert from "node:assert/strict";
import test from "node:test";
import { foretold, laterFrom, stillReturned, usedBeside } from "../../vramscope_frontend/js/commands/later.js";

test("twenty steps later: the last row of the range, and step times on both sides", () => {
  const step = [80, 99, 100, 101, 110, 120];
  const later = laterFrom({ step, time_ns: step, columns: { "reserved_bytes.all.current": [9, 9, 9, 5, 7, 8], "step.duration_us": [1e6, 1e6, 4e6, 3e6, 2e6, 2e6] } }, 100);
  assert.deepEqual([later.reserved, later.used, later.before_s, later.after_s, later.later_s], [8, null, 1, 3, 2]);
});

test("what is used outside of PyTorch is taken from the sample, and unknown stays unknown", () => {
  assert.equal(usedBeside(8, 10, 7), 11);
  assert.equal(usedBeside(8, null, 7), null);
});

test("what is still returned is what the reserved bytes fell by and stayed", () => {
  /** @type {any} */
  const later = { reserved: 90 };
  assert.equal(stillReturned({ state: "done", before: { reserved_bytes: 100 } }, later), 10);
  assert.equal(stillReturned({ state: "done", before: { reserved_bytes: 80 } }, later), 0);
  assert.equal(stillReturned({ state: "done", before: { reserved_bytes: 80 } }, null), null);
});

test("the prediction is that of the dry run of the same ranks", () => {
  const made = (/** @type {any} */ changes) => /** @type {any} */ ({ name: "empty_cache", dry_run: true, state: "done", ranks: [0], created_ns: 1, receipts: { 0: { state: "done", returned_bytes: 7 } }, ...changes });
  const command = made({ dry_run: false, created_ns: 5 });
  assert.equal(foretold([made({}), made({ ranks: [1], receipts: { 1: { state: "done", returned_bytes: 9 } } }), command], command), 7);
  assert.equal(foretold([made({ created_ns: 9 }), command], command), null);
});
