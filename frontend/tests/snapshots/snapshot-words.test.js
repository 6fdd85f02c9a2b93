import assert from "node:assert/strict";
import test from "node:test";
import { contentsText, nameOf, originText, stateText } from "../../vramscope_frontend/js/snapshots/snapshot-words.js";

/** @returns {any} */
const info = (changes = {}) => ({ mode: "alloc", stacks: true, origin: "command", state: "complete", reason: "", name: "", step: 4120, wire_bytes: 200, received_bytes: 50, ...changes });

test("what a snapshot holds", () => {
  assert.equal(contentsText(info()), "every event");
  assert.equal(contentsText(info({ stacks: false })), "every event, no stacks");
  assert.equal(contentsText(info({ mode: "segments", stacks: false })), "segments and blocks");
  assert.equal(contentsText(info({ origin: "upload", mode: "user" })), "as uploaded");
  assert.equal(contentsText(info({ mode: "later" })), "later");
  assert.equal(originText(info()), "asked for");
});

test("how it is called", () => {
  assert.equal(nameOf(info()), "Step 4,120");
  assert.equal(nameOf(info({ name: "a.pickle" })), "a.pickle");
  assert.equal(nameOf(info({ step: null })), "Snapshot");
});

test("one that cannot be opened says why", () => {
  assert.equal(stateText(info()), null);
  assert.match(stateText(info({ state: "receiving" })) ?? "", /^arriving, 25/);
  assert.equal(stateText(info({ state: "incomplete" })), "incomplete: its sender is gone");
  assert.equal(stateText(info({ state: "failed", reason: "no room" })), "failed: no room");
});
