import assert from "node:assert/strict";
import test from "node:test";
import { Recording } from "../../vramscope_frontend/js/data/recording.js";

/** @type {import("../../vramscope_frontend/js/snapshots/explorer-view.js").ExplorerView} */
const VIEW = { by: "stack", range: null, at: null, fold: true, drawn: "icicle", device: null };
const steps = [10, 20, 30, 40, 50].map((x, i) => ({ x, moment: i, step: null, ordinal: i + 1 }));

/**
 * A server that answers by path, and what it was asked.
 * @param {Record<string, any>} answers by the end of the path
 */
function serve(answers) {
  /** @type {string[]} */
  const asked = [];
  globalThis.fetch = /** @type {any} */ (async (/** @type {string} */ path) => {
    asked.push(path);
    const name = path.split("?")[0].split("/").at(-1) ?? "";
    const answer = answers[name] ?? answers.snapshot;
    return answer.error ? new Response(JSON.stringify(answer), { status: 404 }) : new Response(JSON.stringify(answer));
  });
  return asked;
}

test("a long recording is opened at its last steps", async () => {
  const asked = serve({ s1: { state: "complete" }, timeline: { start: 0, end_x: 51, steps, has_history: true } });
  let changes = 0;
  const recording = new Recording("s1", () => changes++);
  await recording.open(VIEW);
  assert.deepEqual([recording.whole, recording.first, changes], [[0, 51], [20, 51], 1]);
  assert.match(asked.at(-1) ?? "", /timeline\?by=stack&start=20&end=51$/);
  assert.deepEqual(recording.rangeOf({ ...VIEW, range: [1, 2] }), [1, 2]);
});

test("one that is still arriving is asked nothing", async () => {
  const asked = serve({ s1: { state: "receiving" } });
  const recording = new Recording("s1", () => undefined);
  await recording.open(VIEW);
  assert.equal(asked.length, 1);
  assert.equal(recording.timeline, null);
});

test("without a history the moment is the end", async () => {
  const asked = serve({ s1: { state: "complete" }, timeline: { start: 0, end_x: 0, steps: [], has_history: false }, moment: { live_bytes: 5 } });
  const recording = new Recording("s1", () => undefined);
  await recording.open(VIEW);
  await recording.loadMoment(7, { ...VIEW, fold: false, device: 1 });
  assert.match(asked.at(-1) ?? "", /moment\?at=end&fold=false&device=1$/);
  assert.equal(recording.moment?.live_bytes, 5);
});

test("what fails is kept, and goes with the next answer", async () => {
  serve({ snapshot: { error: { code: "not_found", message: "no snapshot 's1'" } } });
  const recording = new Recording("s1", () => undefined);
  await recording.open(VIEW);
  await recording.loadMoment(7, VIEW);
  assert.deepEqual([recording.error?.message, recording.momentError?.message], ["no snapshot 's1'", "no snapshot 's1'"]);
  serve({ s1: { state: "complete" }, timeline: { start: 0, end_x: 9, steps: [], has_history: true } });
  await recording.open(VIEW);
  assert.equal(recording.error, null);
});

test("an answer that nobody waits for any more changes nothing", async () => {
  serve({ s1: { state: "complete" }, timeline: { start: 0, end_x: 9, steps: [], has_history: true } });
  let changes = 0;
  const recording = new Recording("s1", () => changes++);
  globalThis.fetch = /** @type {any} */ ((/** @type {string} */ _path, /** @type {{signal: AbortSignal}} */ { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))));
  const waiting = recording.open(VIEW);
  recording.close();
  await waiting;
  assert.deepEqual([changes, recording.error], [0, null]);
});
