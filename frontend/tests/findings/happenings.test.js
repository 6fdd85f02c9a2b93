import assert from "node:assert/strict";
import test from "node:test";
import { findingHappenings } from "../../vramscope_frontend/js/findings/happenings.js";
import { made } from "./made-finding.js";

test("warnings are marks when found and when over; what is muted, final or only worth knowing is not", () => {
  const kinds = (/** @type {object} */ changes) => findingHappenings([made(changes)]).map((one) => one.kind);
  assert.deepEqual(kinds({}), ["finding-critical"]);
  assert.deepEqual(kinds({ severity: "warning", resolved_ns: 2e18, state: "resolved" }), ["finding-warning", "finding-over"]);
  assert.deepEqual(kinds({ resolved_ns: 2e18, state: "final" }), ["finding-critical"]);
  assert.deepEqual([...kinds({ severity: "info" }), ...kinds({ muted: { reason: "x", until: "run" } }), ...kinds({ kind: "oom" })], []);
});
