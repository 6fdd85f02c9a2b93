import assert from "node:assert/strict";
import test from "node:test";
import { accusedRanks, findingGlyph, findingTime, findingTitle, isPast, lookedForText, mergeFindings, mutedFindings, openFindings, pastFindings, presentFindings } from "../vramscope_frontend/js/findings.js";

/** @returns {any} */
const finding = (/** @type {string} */ id, /** @type {object} */ more = {}) => ({ id, kind: "agent_degraded", severity: "info", opened_ns: Number(id), resolved_ns: null, ranks: [0], ...more });

test("a finding that is over stays over when an old answer comes late", () => {
  const over = mergeFindings([finding("1")], [finding("1", { resolved_ns: 9 })]);
  assert.equal(mergeFindings(over, [finding("1")])[0].resolved_ns, 9);
  assert.equal(mergeFindings([finding("1")], [finding("1", { summary: "new words" })])[0].summary, "new words");
});

test("the most urgent that holds comes first, and past ones are apart", () => {
  const all = [finding("1"), finding("2", { severity: "critical" }), finding("3", { severity: "warning" }), finding("4", { severity: "critical" }), finding("5", { resolved_ns: 6 }), finding("6", { resolved_ns: 9 })];
  assert.deepEqual(openFindings(all).map((one) => one.id), ["4", "2", "3", "1"]);
  assert.deepEqual(pastFindings(all).map((one) => one.id), ["6", "5"]);
});

test("one that came back holds again, whatever arrives in which order", () => {
  const over = finding("1", { resolved_ns: 9, updated_ns: 9 });
  const back = finding("1", { updated_ns: 12 });
  assert.equal(mergeFindings([over], [back])[0].resolved_ns, null);
  assert.equal(mergeFindings([back], [over])[0].resolved_ns, null);
  const turn = (/** @type {number} */ time_ns) => [{ time_ns, what: "opened" }];
  assert.equal(mergeFindings([finding("1", { resolved_ns: 9, history: turn(9) })], [finding("1", { history: turn(12) })])[0].resolved_ns, null);
});

test("muted ones hold, but say nothing; a run that ended shows what it ended with", () => {
  const muted = { reason: "known", until: "run" };
  const all = [finding("1", { muted }), finding("2"), finding("3", { resolved_ns: 9, state: "final" }), finding("4", { resolved_ns: 9, state: "resolved" })];
  assert.deepEqual([openFindings(all), mutedFindings(all), pastFindings(all)].map((list) => list.map((one) => one.id)), [["2"], ["1"], ["4"]]);
  assert.deepEqual(all.map(isPast), [false, false, false, true]);
  assert.deepEqual(presentFindings(all, { state: "live" }).map((one) => one.id), ["2"]);
  assert.deepEqual(presentFindings(all, { state: "ended" }).map((one) => one.id), ["3", "2"]);
});

test("only ranks with a finding of their own are accused", () => {
  const all = [finding("1", { ranks: [3], severity: "warning" }), finding("2", { ranks: [1, 2], severity: "critical" }), finding("3", { ranks: [5] })];
  assert.deepEqual([...accusedRanks(all)], [3]);
});

test("what is looked for is said once", () => {
  assert.equal(lookedForText(["leak", "near_oom", "oom", "what_is_new"]), "leak, running out of memory");
});

test("a kind that is not known shows its own name", () => {
  assert.equal(findingTitle(finding("1", { kind: "pinned_growth" })), "Pinned host memory grows");
  assert.match(findingTitle(finding("1")), /less than was asked for/);
});

test("shape and time say whether it holds", () => {
  assert.deepEqual(["info", "warning", "critical"].map((severity) => findingGlyph(finding("1", { severity }))), ["info", "warn", "crit"]);
  assert.match(findingTime(finding("1"), 5e9), /^since .*, for 5\.0 s$/);
  assert.match(findingTime(finding("1", { resolved_ns: 9e9 }), 5e9), / to /);
  assert.match(findingTime(finding("1", { resolved_ns: 9 }), 5e9), /^at /);
});
