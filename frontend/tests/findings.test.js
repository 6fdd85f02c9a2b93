import assert from "node:assert/strict";
import test from "node:test";
import { findingGlyph, findingTime, findingTitle, mergeFindings, openFindings, pastFindings } from "../vramscope_frontend/js/findings.js";

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

test("a kind that is not known shows its own name", () => {
  assert.equal(findingTitle(finding("1", { kind: "pinned_growth" })), "Pinned growth");
  assert.match(findingTitle(finding("1")), /less than was asked for/);
});

test("shape and time say whether it holds", () => {
  assert.deepEqual(["info", "warning", "critical"].map((severity) => findingGlyph(finding("1", { severity }))), ["info", "warn", "crit"]);
  assert.match(findingTime(finding("1"), 5e9), /^since .*, for 5\.0 s$/);
  assert.match(findingTime(finding("1", { resolved_ns: 9 }), 5e9), / to /);
});
