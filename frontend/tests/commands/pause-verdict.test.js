import assert from "node:assert/strict";
import test from "node:test";
import { pauseVerdict } from "../../vramscope_frontend/js/commands/pause-verdict.js";

const NOW = 1_800_000_000_000_000_000;
/** @type {any} */
const pause = { command: {}, step: 4812, until_ns: NOW + 42e9, by: "ada" };
/** @type {any} */
const healthy = { severity: "ok", key: "x", sentence: "Healthy.", second: "" };

test("a paused run says since which step, by whom and for how long", () => {
  const verdict = pauseVerdict(pause, healthy, 8, NOW);
  assert.equal(verdict.sentence, "Paused after step 4,812 on all 8 ranks: training stands still.");
  assert.match(verdict.second, /^Paused by ada; goes on by itself in 42 s, at \d\d:\d\d:\d\d\. It keeps all its memory\.$/);
});

test("what is wrong besides is not hidden by a pause", () => {
  const verdict = pauseVerdict(pause, { ...healthy, severity: "crit", sentence: "Leaking." }, 1, NOW);
  assert.deepEqual([verdict.severity, verdict.second.endsWith("Also: Leaking.")], ["crit", true]);
});
