import assert from "node:assert/strict";
import test from "node:test";
import { askedText, whereItWent } from "../../vramscope_frontend/js/oom/where-it-went.js";
import { madeReport } from "./made-report.js";

const MIB = 2 ** 20;
const parts = (/** @type {any} */ report) => Object.fromEntries((whereItWent(report)?.parts ?? []).map((part) => [part.id, Math.round(part.bytes / MIB)]));

test("a cap of the process is divided by what PyTorch holds, and the overhang is the reason", () => {
  assert.deepEqual(parts(madeReport()), { parameters: 64, gradients: 229, optimizer: 128, activations: 2064, stranded: 421, left: 166 });
  const account = whereItWent(madeReport());
  assert.deepEqual([account?.isOwnLimit, (account?.missing_bytes ?? 0) / MIB], [true, 32]);
  assert.equal(account && askedText(account), "198 MiB in one piece: 32.0 MiB too much");
});

test("a whole device has others on it, and what nobody accounts for", () => {
  const report = madeReport({ allowed_bytes: null, device_total_bytes: 4000 * MIB, device_free_bytes: 100 * MIB, outside: [{ name: "context", bytes: 500 * MIB }], processes: [{ pid: 1, bytes: 3400 * MIB, own: true }, { pid: 2, bytes: 300 * MIB, own: false }] });
  assert.deepEqual(parts(report), { parameters: 64, gradients: 229, optimizer: 128, activations: 2064, stranded: 421, context: 500, other: 300, unknown: 194, left: 100 });
});

test("parts add up to the limit whatever the driver says", () => {
  for (const changes of [{}, { allowed_bytes: null, device_total_bytes: 4000 * MIB, device_free_bytes: null }, { by_category: {} }, { counters: { "reserved_bytes.all.current": 3072 * MIB } }]) {
    const account = whereItWent(madeReport(changes));
    assert.ok(account);
    assert.equal(Math.round(account.parts.reduce((sum, part) => sum + part.bytes, 0)), account.limit_bytes);
  }
});

test("without categories tensors are one part; without counters there is no picture", () => {
  assert.equal(parts(madeReport({ by_category: {} })).tensors, 2485);
  assert.equal(whereItWent(madeReport({ counters: {} })), null);
  assert.equal(whereItWent(madeReport({ allowed_bytes: null, device_total_bytes: null })), null);
});

test("an amount that is not known is not 0", () => {
  const account = whereItWent(madeReport({ request_bytes: null, segment_bytes: null }));
  assert.equal(account && askedText(account), "what was asked for is not known");
  assert.equal(account?.missing_bytes, null);
});
