import assert from "node:assert/strict";
import test from "node:test";
import { endsNear, growthSentence, momentChoices } from "../../vramscope_frontend/js/snapshots/growth-words.js";

const MIB = 2 ** 20;
/** @returns {any} */
const row = (/** @type {string} */ label, /** @type {number} */ before, /** @type {number} */ after, blocks = 0) => ({ label, before_bytes: before * MIB, after_bytes: after * MIB, before_blocks: 1, after_blocks: 1 + blocks });
/** @returns {any} */
const growth = (/** @type {any[]} */ ...rows) => ({ rows, before_bytes: rows.reduce((sum, one) => sum + one.before_bytes, 0), after_bytes: rows.reduce((sum, one) => sum + one.after_bytes, 0) });

test("who grew most is named, with how much", () => {
  assert.equal(growthSentence(growth(row("train.py:56 leak", 6, 77, 36), row("b", 9, 8))), "70.0 MiB more than before: train.py:56 leak grew by 71.0 MiB in 36 more blocks.");
  assert.equal(growthSentence(growth(row("a", 10, 2), row("b", 1, 3))), "6.0 MiB less than before: b grew by 2.0 MiB.");
  assert.equal(growthSentence(growth(row("a", 10, 10))), "Nothing grew.");
  assert.equal(growthSentence(growth(row("a", 10, 2))), "8.0 MiB less than before; nothing grew.");
});

test("ends of steps can be chosen, of very many some", () => {
  const steps = Array.from({ length: 150 }, (_, i) => ({ x: i, moment: i * 10, step: i, ordinal: i + 1 }));
  const choices = momentChoices({ steps, end: 9999, has_history: true });
  assert.ok(choices.length <= 62);
  assert.deepEqual([choices[0], choices.at(-1)], [{ value: -1, text: "before the first event" }, { value: 1490, text: "end of step 149" }]);
  assert.deepEqual(momentChoices({ steps: [], end: 0, has_history: false }), [{ value: 0, text: "this snapshot" }]);
  assert.deepEqual(momentChoices({ steps: [], end: 7, has_history: true }).at(-1), { value: 7, text: "the end" });
});

test("the ends of a range are compared where steps end nearest to them", () => {
  const steps = [100, 200, 300].map((x, i) => ({ x, moment: 10 * (i + 1), step: i, ordinal: i + 1 }));
  assert.deepEqual(endsNear(steps, [120, 290]), [10, 30]);
  assert.deepEqual(endsNear(steps, [0, 1000]), [10, 30]);
  assert.equal(endsNear(steps, [190, 220]), null, "one and the same step");
  assert.equal(endsNear(steps.slice(0, 1), [0, 1000]), null);
});
