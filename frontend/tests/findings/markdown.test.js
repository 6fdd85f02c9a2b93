import assert from "node:assert/strict";
import test from "node:test";
import { findingMarkdown } from "../../vramscope_frontend/js/findings/markdown.js";
import { made } from "./made-finding.js";

const seen = { run: "llama", world_size: 8, address: "http://host/runs/x/findings?finding=one", now_ns: 1e18 + 60e9, emulated: true };

test("a finding as Markdown has its line, its holders, its remedies and its address", () => {
  const text = findingMarkdown(made({
    ranks: [3],
    evidence: { source: { file: "train.py", first_line: 55, line: 56, lines: ["a()", "keep(loss)"] } },
    culprits: [{ file: "/x/train.py", line: 56, function: "main", tensors: ["float32[8]"], held_by: ["T.results", "list of 40"] }],
    remedies: [{ action: "append `loss.detach()`", why: "stops the growth", predicted_bytes: null, cost: "", fix: "keep(loss.detach())" }],
  }), seen);
  for (const part of ["### Leaking 3.1 MiB", "run `llama`, rank 3, on an emulated device", ">   56  keep(loss)", "`train.py:56` in `main`, held by T.results › list of 40 (float32[8])", "1. Append `loss.detach()`. Stops the growth.", "       keep(loss.detach())", "It began at step 310."]) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.ok(text.endsWith(`${seen.address}\n`));
});

test("what is not known is left out", () => {
  const text = findingMarkdown(made({ detail: "", since_step: null }), { ...seen, world_size: 1, emulated: false });
  assert.doesNotMatch(text, /undefined|null|NaN|What would help|Why we are sure|rank/);
});
