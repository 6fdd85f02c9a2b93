import assert from "node:assert/strict";
import test from "node:test";
import { costByPart, gilPerTurn_us, partNames, rateText, trustVerdict } from "../vramscope_frontend/js/account.js";

/** @returns {any} */
const status = (/** @type {object} */ account = {}, /** @type {object} */ more = {}) => ({ rate_hz: 10, cost_fraction: 0.004, account: { elapsed_us: 1_000_000, cpu_us: { sampler: 3000, transport: 1000 }, turns: 10, gil_us: 1500, wanted_rate_hz: 10, ...account }, ...more });
/** @returns {any} */
const rank = (/** @type {any} */ one, /** @type {object} */ more = {}) => ({ rank: 0, samples_lost: 0, steps_lost: 0, status: one, ...more });

test("a rate says what was wanted only when it is not that", () => {
  assert.equal(rateText(status()), "10");
  assert.equal(rateText(status({}, { rate_hz: 4.04 })), "4 of 10");
  assert.equal(rateText({ rate_hz: 5, cost_fraction: 0 }), "5");
  assert.equal(rateText(null), "–");
});

test("cost by part is a share of the time since attach, and unknown without an account", () => {
  assert.deepEqual(costByPart(status()), { sampler: 0.003, transport: 0.001 });
  assert.equal(costByPart(null), null);
  assert.equal(costByPart({ rate_hz: 1, cost_fraction: 0 }), null);
  assert.equal(costByPart(status({ elapsed_us: 0 })), null);
});

test("known parts come first, others by name", () => {
  assert.deepEqual(partNames([null, status({ cpu_us: { map: 1, hooks: 1, census: 1, sampler: 1 } })]), ["sampler", "hooks", "census", "map"]);
});

test("the GIL is told per turn", () => {
  assert.equal(gilPerTurn_us(status()), 150);
  assert.equal(gilPerTurn_us(status({ gil_us: null })), null);
  assert.equal(gilPerTurn_us(status({ turns: 0 })), null);
});

test("the sentence says whether the picture is whole", () => {
  assert.equal(trustVerdict([rank(null)], []), null);
  const whole = trustVerdict([rank(status())], []);
  assert.equal(whole?.severity, "ok");
  assert.match(trustVerdict([rank({ ...status(), cost_fraction: 0.0004 })], [])?.second ?? "", /^Watching costs 0\.04.% of a core\. /);
  assert.match(whole?.sentence ?? "", /^The picture is whole: nothing was lost, no error of the agent\.$/);
  const gaps = trustVerdict([rank(status({}, { guard_errors: 2 }), { samples_lost: 512 })], []);
  assert.equal(gaps?.sentence, "The picture has gaps: 512 rows were lost, 2 errors of the agent.");
});

test("an open finding makes the sentence", () => {
  /** @type {any} */
  const finding = { id: "1", kind: "agent_degraded", severity: "warning", summary: "Sampling at 2.0 instead of 10 Hz.", opened_ns: 1, resolved_ns: null, ranks: [0] };
  const verdict = trustVerdict([rank(status())], [finding]);
  assert.equal(verdict?.severity, "warn");
  assert.match(verdict?.sentence ?? "", /Sampling at 2\.0 instead of 10 Hz\.$/);
  assert.equal(trustVerdict([rank(status())], [{ ...finding, resolved_ns: 2 }])?.severity, "ok");
});
