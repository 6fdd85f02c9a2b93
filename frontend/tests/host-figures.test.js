import assert from "node:assert/strict";
import test from "node:test";
import { deviceFields, garbageText, HOST_FIELDS, newest, risen, usedOf } from "../vramscope_frontend/js/host-figures.js";

/** @returns {any} */
const payload = (/** @type {Record<string, (number | null)[]>} */ columns, /** @type {number[]} */ time_ns = [0, 30e9, 60e9]) => ({ time_ns, rank: 0, resolution_ms: 0, columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, { min: values, mean: values, max: values }])) });

test("the newest known value counts, and what was never known is not 0", () => {
  assert.deepEqual(newest(payload({ a: [1, 2, null], b: [null, null, null], c: [] })), { a: 2, b: null, c: null });
});

test("a counter rises from its first known value", () => {
  assert.equal(risen(payload({ a: [null, 4, 9] }), "a"), 5);
  assert.equal(risen(payload({ a: [null, null] }), "a"), null);
  assert.equal(risen(payload({}), "a"), null);
  assert.equal(risen(payload({ a: [9, 4] }), "a"), 0);
});

test("what is used of what there is", () => {
  assert.equal(usedOf(1024 ** 3, 2 * 1024 ** 3), "1.0 GiB of 2.0 GiB");
  assert.equal(usedOf(1024 ** 3, null), "1.0 GiB");
  assert.equal(usedOf(null, null), "–");
});

test("garbage collection is a share of the time", () => {
  const columns = { "gc.collections": [10, 20], "gc.full_collections": [1, 2], "gc.pause_us": [0, 600_000] };
  assert.equal(garbageText(payload(columns, [0, 60e9])), "10 (1 full), 1.00 % of the time");
  assert.equal(garbageText(payload(columns, [0])), "–");
  assert.equal(garbageText(payload({}, [0, 60e9])), "–");
});

test("a further device has its number behind each name, and one request holds all fields", () => {
  assert.deepEqual(deviceFields(2), ["allocated_bytes.all.current@2", "reserved_bytes.all.current@2", "device.used_bytes@2"]);
  assert.ok(HOST_FIELDS.length + 8 * deviceFields(1).length <= 64);
});
