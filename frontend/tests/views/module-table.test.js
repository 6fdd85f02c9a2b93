import assert from "node:assert/strict";
import { test } from "node:test";

import { inOrder, moduleReport, moduleSentence } from "../../vramscope_frontend/js/views/module-table.js";

/** @param {string} path @param {number} depth @param {number | null} kept @param {number | null} forward */
const row = (path, depth, kept, forward) => ({ path, type: "Linear", depth, parameters_bytes: 0, buffers_bytes: 0, calls: 1, kept_bytes: kept, forward_peak_bytes: null, forward_extra_bytes: forward, backward_peak_bytes: null, backward_extra_bytes: null, recomputed: false });

const MODULES = [row("Model", 0, 900, 1000), row("first", 1, 200, 700), row("last", 1, 600, 650), row("never", 1, null, null)];
const REPORT = { steps: 3, modules: MODULES, modules_left_out: 0, added_ms_per_step: 1.2 };

test("modules are in the order of the model, or by what weighs most, unknown ones last", () => {
  const paths = (/** @type {import("../../vramscope_frontend/js/views/module-table.js").ModuleOrder} */ order) => inOrder(MODULES, order).map(({ path }) => path);
  assert.deepEqual(paths("tree"), ["Model", "first", "last", "never"]);
  assert.deepEqual(paths("kept"), ["Model", "last", "first", "never"]);
  assert.deepEqual(paths("forward"), ["Model", "first", "last", "never"]);
});

test("the sentence names the innermost module that keeps most", () => {
  assert.equal(moduleSentence({ ...REPORT, modules: MODULES.map((one) => ({ ...one, kept_bytes: (one.kept_bytes ?? 0) * 2 ** 20 })) }), "Of single modules last keeps most for the backward: 600.0 MiB.");
  assert.equal(moduleSentence({ ...REPORT, modules: [row("Model", 0, null, null)] }), "No module ran in the steps that were watched.");
});

test("only the receipt of this command is taken for a report", () => {
  assert.equal(moduleReport("text"), null);
  assert.equal(moduleReport(null), null);
  assert.equal(moduleReport({ collected: 3 }), null);
  assert.equal(moduleReport(REPORT), REPORT);
});
