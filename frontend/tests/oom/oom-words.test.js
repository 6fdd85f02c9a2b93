import assert from "node:assert/strict";
import test from "node:test";
import { byLine, oomMarkdown, oomVerdict, outcomeText } from "../../vramscope_frontend/js/oom/oom-words.js";
import { made } from "../findings/made-finding.js";
import { madeAnswer } from "./made-report.js";

test("what came of it", () => {
  assert.equal(outcomeText(madeAnswer()), "ended the job");
  assert.equal(outcomeText(madeAnswer({ is_fatal: false, recovered_step: 32 })), "recovered: step 32 ended after it");
  assert.equal(outcomeText(madeAnswer({ is_fatal: false })), "not known what came of it");
  assert.match(outcomeText(madeAnswer({ source: "asked" })), /did not run out/);
});

test("the sentence is the verdict's; without one it claims no more than is known", () => {
  assert.equal(oomVerdict(madeAnswer({ finding: made({ severity: "warning", summary: "Out of memory.", detail: "More." }) }), 1).sentence, "Out of memory.");
  assert.match(oomVerdict(madeAnswer(), 1).sentence, /^Out of memory at step 31: asked for 198 MiB; 97\.7 GiB were left on the device\.$/);
  assert.match(oomVerdict(madeAnswer({ request_bytes: null }), 1).sentence, /how much was asked for is not known/);
  const asked = oomVerdict(madeAnswer({ source: "asked", linked_to: "o2", rank: 3 }), 8);
  assert.deepEqual([asked.severity, asked.sentence], ["info", "Rank 3 did not run out of memory: this is how it stood when another rank did."]);
});

test("stacks of one line are one row", () => {
  const row = { file: "a.py", line: 3, function: "f", bytes: 5, count: 1 };
  assert.deepEqual(byLine([row, { ...row, line: 4, bytes: 7 }, { ...row, bytes: 6, count: 2 }]).map((one) => [one.line, one.bytes, one.count]), [[3, 11, 3], [4, 7, 1]]);
});

test("Markdown holds the account, the remedies and the words of PyTorch", () => {
  const text = oomMarkdown(madeAnswer({ finding: made({ remedies: [{ action: "halve the batch", why: "saves a third", predicted_bytes: null, fix: "batch = 4" }] }) }), { run: "gpt", world_size: 1, address: "http://x/oom/o1" });
  for (const part of ["| free, in pieces | 421 MiB |", "| asked for | 198 MiB in one piece: 32.0 MiB too much |", "1. Halve the batch. Saves a third.", "CUDA out of memory.", "http://x/oom/o1"]) assert.ok(text.includes(part), part);
});

test("a fix of several lines stays one block of code, a remedy without reasons ends with its sentence", () => {
  const remedies = [{ action: "halve the batch", why: "", predicted_bytes: null, fix: "batch = 4\nsteps = 2" }, { action: "empty the cache", why: "frees what is unused", predicted_bytes: null }];
  const text = oomMarkdown(madeAnswer({ finding: made({ remedies }) }), { run: "gpt", world_size: 1, address: "http://x/oom/o1" });
  assert.ok(text.includes("\n\n**What would have helped**\n\n1. Halve the batch.\n\n       batch = 4\n       steps = 2\n\n2. Empty the cache. Frees what is unused."), text);
  assert.doesNotMatch(oomMarkdown(madeAnswer({ finding: made() }), { run: "gpt", world_size: 1, address: "" }), /What would have helped/);
});
