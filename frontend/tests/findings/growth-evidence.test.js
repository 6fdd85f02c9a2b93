import assert from "node:assert/strict";
import test from "node:test";
import { drawableForecast, drawnFinding, evidenceOf, isSmallOnAxis, rangeText, stretched } from "../../vramscope_frontend/js/findings/growth-evidence.js";
import { made } from "./made-finding.js";

const MIB = 2 ** 20;
const forecast = { early_s: 1560, late_s: 2040, early_steps: 3300, late_steps: 4300, at_step: 4812, confidence: 0.95, limit_bytes: 139 * 2 ** 30 };
const steps = { x: Array.from({ length: 4813 }, (_, i) => i), t: Array.from({ length: 4813 }, (_, i) => i / 2), columns: {}, binWidth: 0 };
const leak = made({ evidence: { slope_bytes_per_step: 3.1 * MIB, grown_bytes: 13 * 2 ** 30, forecast } });

test("a forecast is drawn only when it is sure enough and near enough", () => {
  assert.ok(drawableForecast(forecast));
  for (const changes of [{ confidence: 0.69 }, { late_s: 25 * 3600 }, { late_s: 1 }, { early_s: NaN }]) assert.equal(drawableForecast({ ...forecast, ...changes }), null);
  assert.equal(drawableForecast(undefined), null);
});

test("onset, slope and wedge lie on the axis that is shown", () => {
  const bySteps = evidenceOf(leak, { steps, rows: steps, xKind: "step", isLive: true });
  assert.deepEqual([bySteps.onset, bySteps.slopeText, bySteps.wedge?.early, bySteps.wedge?.late, bySteps.layer], [310, "+3.1 MiB/step", 8112, 9112, "grown"]);
  assert.deepEqual(bySteps.wedge?.label, ["full in 26 to 34 min", "step 8,112 to 9,112"]);
  const byTime = evidenceOf(leak, { steps, rows: steps, xKind: "time", isLive: true });
  assert.deepEqual([byTime.onset, byTime.wedge?.early], [155, 2406 + 1560]);
  assert.equal(evidenceOf(leak, { steps, rows: steps, xKind: "step", isLive: false }).wedge, null);
});

test("steps that count anew keep their number and go on along the axis", () => {
  const evidence = evidenceOf({ ...leak, since_step: 10, step_offset: 300 }, { steps, rows: steps, xKind: "step", isLive: true });
  assert.deepEqual([evidence.onset, evidence.onsetText], [310, "step 10"]);
});

test("a step without a row is at the time of the next one; beyond all rows at that of the last", () => {
  const gaps = { x: [10, 20, 400], t: [5, 11, 90], columns: {}, binWidth: 0 };
  const onsets = [3, 10, 11, 20, 310, 400, 401].map((since_step) => evidenceOf({ ...leak, since_step }, { steps: gaps, rows: gaps, xKind: "time", isLive: false }).onset);
  assert.deepEqual(onsets, [5, 5, 11, 11, 90, 90, 90]);
  const none = { ...gaps, x: [], t: [] };
  assert.equal(evidenceOf(leak, { steps: none, rows: none, xKind: "time", isLive: false }).onset, null);
});

test("info accuses nothing; what is suspected is drawn without red", () => {
  assert.equal(evidenceOf({ ...leak, severity: "info" }, { steps, rows: steps, xKind: "step", isLive: true }).layer, null);
  const suspected = evidenceOf({ ...leak, severity: "info", stage: "suspected" }, { steps, rows: steps, xKind: "step", isLive: true });
  assert.deepEqual([suspected.severity, suspected.layer], ["info", "grown"]);
});

test("the chart shows what grew before what did not", () => {
  const other = made({ id: "other", kind: "other_process", since_step: null });
  assert.equal(drawnFinding([other, leak])?.id, leak.id);
  assert.equal(drawnFinding([other])?.id, "other");
  // Memory of the host is not in this chart.
  assert.equal(drawnFinding([{ ...leak, kind: "host_growth" }]), null);
  assert.equal(drawnFinding([made({ kind: "agent_degraded", severity: "info", since_step: null })]), null);
});

test("times are ranges, never one false-exact number", () => {
  assert.deepEqual([rangeText(20, 41), rangeText(1560, 2040), rangeText(7 * 3600, 8.5 * 3600), rangeText(1560, 1561), rangeText(20, 150)], ["20 to 41 s", "26 to 34 min", "7 to 9 h", "26 to 27 min", "less than 3 min"]);
});

test("a forecast makes the axis longer, but data keep a good part of it", () => {
  assert.equal(stretched([0, 100], null), 100);
  assert.ok(stretched([0, 100], { early: 110, late: 120, limit_bytes: null, label: [] }) > 120);
  assert.equal(stretched([0, 100], { early: 500, late: 9000, limit_bytes: null, label: [] }), 260);
});

test("growth under a tenth of the axis is small on it", () => {
  assert.ok(isSmallOnAxis(leak, 139.8 * 2 ** 30));
  assert.ok(!isSmallOnAxis(leak, 100 * 2 ** 30));
  assert.ok(!isSmallOnAxis(made({ since_step: null, evidence: { grown_bytes: 1 } }), 100));
});
