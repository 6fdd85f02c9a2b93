import assert from "node:assert/strict";
import test from "node:test";
import { commandEntry } from "../../vramscope_frontend/js/commands/catalogue.js";
import { actionLabel, dryRunSentence, effectOf, plannedSentence, receiptSentence, takenBack } from "../../vramscope_frontend/js/commands/effects.js";

const GIB = 2 ** 30;
const before = { "reserved_bytes.all.current": 124 * GIB, "active_bytes.all.current": 103.4 * GIB, "inactive_split_bytes.all.current": 0.9 * GIB };
/** @returns {any} */
const command = (changes = {}, receipt = {}) => ({ id: "x", name: "empty_cache", dry_run: true, ranks: [0], state: "done", issued_by: "ada", origin: "browser", receipts: { 0: { state: "done", step: 4812, before, after: {}, returned_bytes: 19.7 * GIB, took_s: 0.018, ...receipt } }, ...changes });

test("a dry run says what comes back and what the next step takes", () => {
  const text = dryRunSentence(command(), 123.3 * GIB);
  assert.equal(text.sentence, "Would return 19.7 GiB of 20.6 GiB. The next step takes at least 19.0 GiB back.");
  assert.match(text.sub, /at most 0\.7 GiB|at most 717 MiB/);
});

test("what the next step takes is not claimed when it is not known", () => {
  const text = dryRunSentence(command(), null);
  assert.equal(text.sentence, "Would return 19.7 GiB of 20.6 GiB.");
  assert.equal(takenBack({ reserved: 10, returned: 4, activePeak: 3 }), 0);
  assert.equal(takenBack({ reserved: 10, returned: 4, activePeak: 99 }), 4);
});

test("nothing to return is no offer", () => {
  assert.match(dryRunSentence(command({}, { returned_bytes: 0 }), null).sentence, /^Would return nothing\.$/);
});

test("the reason comes first when it did not work", () => {
  assert.equal(receiptSentence(command({ state: "expired", dry_run: false }, { message: "no optimizer step within 30 s. Nothing was changed." }), 1), "Expired: no optimizer step within 30 s. Nothing was changed.");
  assert.equal(receiptSentence(command({ state: "done", dry_run: false }, { returned_bytes: null, message: "Snapshot bd241f0fde824c908bc2f7775e4c3c77: 558 blocks." }), 1), "Snapshot bd241f0f: 558 blocks.");
  assert.match(receiptSentence(command({ state: "refused", receipts: {} }), 1), /^Refused: .*Nothing was changed/);
  assert.equal(receiptSentence(command({ dry_run: false }), 1), "19.7 GiB returned to the device.");
});

test("the guilty rank is named where the others say something else", () => {
  const receipts = { 0: { state: "done", message: "Did it." }, 1: { state: "refused", message: "a stream is capturing. Nothing was changed." } };
  assert.equal(receiptSentence(command({ state: "refused", dry_run: false, receipts }), 2), "Refused: rank 1: a stream is capturing. Nothing was changed.");
  const same = { 0: { state: "refused", message: "Rank 1 refused: no." }, 1: { state: "refused", message: "no." } };
  assert.equal(receiptSentence(command({ state: "refused", dry_run: false, receipts: same }), 2), "Refused: Rank 1 refused: no.");
});

test("what was rolled back says so first", () => {
  const receipts = { 0: { state: "failed", message: "Rolled back: the first step ran out of memory; 32 samples again." } };
  assert.equal(receiptSentence(command({ name: "set_batch_size", state: "failed", dry_run: false, receipts }), 1), "Rolled back: the first step ran out of memory; 32 samples again.");
});

test("a dry run without memory says what the ranks say, and that they differ", () => {
  const receipts = { 0: { state: "done", message: "Would set 48." }, 1: { state: "done", message: "Would set 47." } };
  assert.deepEqual(plannedSentence(command({ receipts })), { sentence: "Would set 48.", sub: "The ranks differ: Would set 47." });
});

test("the button names its effect and its ranks", () => {
  const batch = /** @type {any} */ (commandEntry("set_batch_size"));
  assert.equal(actionLabel(batch, null, [0, 1], 2, { batch_size: 48 }), "Set the batch size to 48 on all 2 ranks");
  assert.equal(actionLabel(batch, null, [0, 1], 2, { batch_size: null }), "Set the batch size on all 2 ranks");
  const entry = /** @type {any} */ (commandEntry("empty_cache"));
  assert.equal(actionLabel(entry, 19.7 * GIB, [0], 1), "Free 19.7 GiB on rank 0");
  assert.equal(actionLabel(entry, 157 * GIB, [0, 1], 2), "Free 157.0 GiB on all 2 ranks");
});

test("receipts are read under long and short names", () => {
  assert.equal(effectOf({ reserved_bytes: 5 }, null).reserved, 5);
  assert.equal(effectOf({ "device.used_bytes": 3 }, 10).free, 7);
  assert.equal(effectOf(undefined, 10).free, null);
});
