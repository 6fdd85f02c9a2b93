import assert from "node:assert/strict";
import test from "node:test";
import { bandsOf, phaseAt, PhaseLog, phasesWithin, stretchText } from "../vramscope_frontend/js/phases.js";
import { phaseHappenings } from "../vramscope_frontend/js/marks.js";

const S = 1e9;
/** @returns {any} */
const event = (/** @type {number} */ id, /** @type {number} */ from_s, /** @type {number | null} */ to_s, /** @type {any} */ data = {}, rank = 0) => ({ time_ns: from_s * S, rank, step: 500, kind: "phase", text: "", data: { id, phase: "eval", code: 1, start_ns: from_s * S, end_ns: to_s === null ? null : to_s * S, end_step: to_s === null ? null : 500, count: 1, ...data } });
const logOf = (/** @type {any[]} */ ...events) => {
  const log = new PhaseLog();
  log.take(events);
  return log;
};

test("a stretch that is open and then closed is one, and is not opened again", () => {
  const log = logOf(event(1, 10, null), event(1, 10, 22.4), event(1, 10, null));
  assert.deepEqual(log.of(0).map(stretchText), ["eval, 12.4 s"]);
});

test("the same number in another life of the rank is another stretch", () => {
  assert.equal(logOf(event(1, 10, 12), event(1, 500, 510)).of(0).length, 2);
  assert.equal(logOf(event(1, 10, 12), event(1, 10, 12, {}, 3)).of(3).length, 1);
});

test("training itself is no band, and other events are none", () => {
  assert.equal(logOf(event(1, 10, 12, { phase: "train", code: 0 }), { ...event(2, 1, 2), kind: "mark" }).of(0).length, 0);
});

test("bands lie where their time does; what is open goes on to the end of what is known", () => {
  const stretches = logOf(event(1, 110, 120), event(2, 150, null, { phase: "checkpoint", code: 2 })).of(0);
  const bands = bandsOf(stretches, 100 * S, (t) => t * 2, 70);
  assert.deepEqual(bands.map(({ x0, x1, name, kind }) => [x0, x1, name, kind]), [[20, 40, "eval", "eval"], [100, 140, "checkpoint", "checkpoint"]]);
  assert.match(bands[1].title, /checkpoint, still running$/);
});

test("at a moment the innermost phase comes first", () => {
  const stretches = logOf(event(1, 10, 60), event(2, 40, 44, { phase: "checkpoint", code: 2 })).of(0);
  assert.equal(phaseAt(stretches, 42 * S, null), "checkpoint (4.0 s) in eval (50.0 s)");
  assert.equal(phaseAt(stretches, 80 * S, null), "train");
  assert.equal(phaseAt([], 80 * S, null), null);
});

test("what was too short to be told is known by the code of the sample", () => {
  assert.equal(phaseAt([], 1 * S, 2), "checkpoint");
  const named = logOf(event(1, 10, 20, { phase: "generate", code: 16 })).of(0);
  assert.equal(phaseAt(named, 50 * S, 16), "generate");
  assert.equal(phaseAt(named, 50 * S, 17), "another phase");
});

test("a step says what went by before it ended", () => {
  const stretches = logOf(event(1, 10, 22.4), event(2, 30, 31, { phase: "data_wait", code: 3 })).of(0);
  assert.equal(phasesWithin(stretches, 9.6 * S, 23 * S, true), "train, eval 12.4 s");
  assert.equal(phasesWithin(stretches, 29.5 * S, 31.2 * S, true), "train, waiting for data 1.0 s");
  assert.equal(phasesWithin(stretches, 50 * S, 51 * S, true), "train");
  assert.equal(phasesWithin([], 50 * S, 51 * S, false), null);
});

test("the list of events holds the newest phases and no waits", () => {
  const stretches = logOf(...Array.from({ length: 9 }, (_, i) => event(i, i * 10, i * 10 + 5)), event(99, 95, 96, { phase: "data_wait", code: 3 })).of(0);
  const all = phaseHappenings(stretches);
  assert.equal(all.length, 4);
  assert.equal(all[3].text, "Eval, 5.0 s");
});

test("of very many the oldest go", () => {
  const log = logOf(...Array.from({ length: 6000 }, (_, i) => event(i, i, i + 0.5)));
  assert.ok(log.of(0).length <= 5000);
  assert.equal(log.of(0).at(-1)?.start_ns, 5999 * S);
});
