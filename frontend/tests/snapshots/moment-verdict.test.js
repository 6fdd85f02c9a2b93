import assert from "node:assert/strict";
import test from "node:test";
import { momentSecond, momentSentence } from "../../vramscope_frontend/js/snapshots/moment-verdict.js";

const GIB = 2 ** 30;
/** @returns {any} */
const held = (/** @type {string} */ label, /** @type {string | null} */ category, /** @type {number} */ bytes) => ({ label, category, file: "", bytes, blocks: 1 });
/** @returns {any} */
const moment = (changes = {}) => ({ moment: 7, peak: 7, live_bytes: 2.5 * GIB, has_history: true, has_stacks: true, entries: 42403, blocks: 326, by_line: [held("train.py:20 forward", "activations", GIB)], ...changes });

test("the line that holds most is in the sentence", () => {
  assert.equal(momentSentence(moment()), "The peak is 2.5 GiB, 1.0 GiB of it train.py:20 forward, kept for the backward pass.");
  assert.equal(momentSentence(moment({ moment: 3 })), "2.5 GiB are live at the cursor, 1.0 GiB of it train.py:20 forward, kept for the backward pass.");
});

test("what was there before accuses nobody", () => {
  const by_line = [held("allocated before the recording", "unknown", 1.5 * GIB), held("train.py:20 forward", "other", GIB)];
  assert.equal(momentSentence(moment({ by_line })), "The peak is 2.5 GiB: 1.5 GiB from before the recording, 1.0 GiB train.py:20 forward.");
});

test("what was not recorded is said", () => {
  assert.match(momentSentence(moment({ has_stacks: false })), /who allocated it was not recorded\.$/);
  assert.match(momentSentence(moment({ by_line: [] })), /^Nothing was live/);
  assert.match(momentSentence(moment({ has_history: false })), /^2\.5 GiB were live, 1\.0 GiB of it/);
});

test("the second line says which recording, and how much of it is seen", () => {
  /** @type {any} */
  const info = { step: 31, rank: 0 };
  assert.equal(momentSecond(info, moment(), "the last 3 steps shown"), "Snapshot at step 31 of rank 0, 42,403 events, the last 3 steps shown. The cursor is at the highest moment.");
  assert.match(momentSecond({ ...info, step: null, rank: null }, moment({ has_history: false }), ""), /^Snapshot, 326 live blocks\. It has no history/);
});
