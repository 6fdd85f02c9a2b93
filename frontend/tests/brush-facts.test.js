import assert from "node:assert/strict";
import test from "node:test";
import { brushFacts, brushText } from "../vramscope_frontend/js/brush-facts.js";
import { ALLOCATED } from "../vramscope_frontend/js/fields.js";

const GIB = 2 ** 30;
const xs = Array.from({ length: 21 }, (_, i) => i);
const steps = { x: xs, t: xs.map((x) => x / 2), columns: { [ALLOCATED]: xs.map((x) => (10 + 0.5 * x) * GIB) }, binWidth: 0 };
/** @type {any} */
const model = { xKind: "step", x: xs, tops: xs.map((x) => (x === 7 ? 90 : 40 + x) * GIB) };

test("a range says how long it is, its lowest and highest, and what grew in it", () => {
  const facts = brushFacts(model, steps, [4.5, 10]);
  assert.deepEqual([facts.duration, (facts.lowest ?? 0) / GIB, (facts.highest ?? 0) / GIB, (facts.growth ?? 0) / GIB], ["6 steps · 3.0 s", 45, 90, 2.5]);
  assert.equal(brushFacts(model, { ...steps, t: xs.map((x) => 2 * x) }, [4.5, 5.5]).duration, "1 step · 2.0 s");
  assert.equal(brushText(facts), "lowest 45.0 GiB · highest 90.0 GiB · growth +2.5 GiB");
});

test("over time it is the same stretch", () => {
  const facts = brushFacts({ ...model, xKind: "time", x: xs.map((x) => x / 2) }, steps, [2.4, 5]);
  assert.deepEqual([facts.duration, (facts.growth ?? 0) / GIB], ["2.6 s", 2.5]);
});

test("where nothing is known nothing is claimed", () => {
  const facts = brushFacts({ ...model, tops: xs.map(() => NaN) }, { ...steps, columns: {} }, [4, 10]);
  assert.deepEqual([facts.lowest, facts.highest, facts.growth, brushText(facts)], [null, null, null, ""]);
});
