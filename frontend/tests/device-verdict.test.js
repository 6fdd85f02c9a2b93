import assert from "node:assert/strict";
import test from "node:test";
import { deviceVerdict } from "../vramscope_frontend/js/device-verdict.js";

const GIB = 2 ** 30;
/** @type {any} */
const rank = { rank: 3, device_uuid: "a", devices: [{ index: 0, uuid: "a", name: "NVIDIA H200" }, { index: 1, uuid: "b", name: "NVIDIA H100" }] };
const limit = (/** @type {number | null} */ bytes) => ({ bytes, label: "device", dashed: false });
const words = (/** @type {string} */ text) => text.replace(/[\u00a0\u202f\u2009]/g, " ");

test("the sentence names the device, and the second line the one on which the steps end", () => {
  const verdict = deviceVerdict(rank, 1, { limit: limit(80 * GIB), peak: { used: 20 * GIB, usedKnown: true, step: null } });
  assert.equal(verdict.severity, "ok");
  assert.equal(words(verdict.sentence), "cuda:1 has 60.0 GiB (75 %) of head-room at the peak.");
  assert.match(verdict.second, /^Rank 3 uses it beside cuda:0, on which its steps end/);
});

test("what a device has left is judged as on the first one, and not guessed", () => {
  const tight = deviceVerdict(rank, 1, { limit: limit(80 * GIB), peak: { used: 79 * GIB, usedKnown: true, step: null } });
  assert.equal(tight.severity, "crit");
  const unknown = deviceVerdict(rank, 1, { limit: limit(80 * GIB), peak: { used: 7 * GIB, usedKnown: false, step: null } });
  assert.equal(words(unknown.sentence), "On cuda:1 PyTorch held 7.0 GiB at the peak; what is free there is not known.");
  assert.equal(deviceVerdict(rank, 1, { limit: limit(null), peak: null }).sentence, "Nothing is known of cuda:1 yet.");
});
