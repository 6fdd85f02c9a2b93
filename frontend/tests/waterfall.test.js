import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { account } from "../vramscope_frontend/js/waterfall.js";

/** @type {{name: string, moment: import("../vramscope_frontend/js/waterfall.js").Moment, reading: Record<string, number | null>, bytes: Record<string, number | null>}[]} */
const vectors = JSON.parse(readFileSync(new URL("../../tests/data/waterfall/vectors.json", import.meta.url), "utf8"));
const NAMES = ["total", "used", "free", "process", "other", "sample_reserved", "reserved", "active", "allocated", "peak_reserved", "peak_active", "peak_allocated", "peak_part", "parameters", "gradients", "optimizer_state", "buffers", "gradients_kept", "optimizer_state_before", "returnable", "stranded", "private_pool"];
const WHOLES = {
  device: ["reserved", "outside", "other_processes", "driver", "unknown", "free"],
  reserved: ["allocated", "pending_free", "returnable", "private_pool", "stranded", "cache_not_split"],
  allocated: ["parameters", "optimizer_state", "buffers", "gradients", "activations", "not_split"],
};
/** @returns {any} */
const readingOf = (/** @type {Record<string, number | null>} */ known) => Object.fromEntries(NAMES.map((name) => [name, known[name] ?? null]));

for (const { name, moment, reading, bytes } of vectors) {
  test(`as the analysis divides it: ${name} (${moment})`, () => {
    for (const key of Object.keys(reading)) assert.ok(NAMES.includes(key), key);
    assert.deepEqual(account(readingOf(reading), moment), bytes);
  });
}

test("known parts add up to their whole, whatever is read", () => {
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
  for (let i = 0; i < 2000; i++) {
    const reading = readingOf(Object.fromEntries(NAMES.map((name) => [name, random() < 0.2 ? null : Math.floor(random() * 1000)])));
    reading.peak_part = Math.floor(random() * 4);
    for (const moment of /** @type {const} */ (["instant", "end", "peak"])) {
      const parts = /** @type {Record<string, number | null>} */ (account(reading, moment));
      for (const [whole, names] of Object.entries(WHOLES)) {
        if (parts[whole] === null) continue;
        const values = names.map((one) => parts[one]).filter((one) => one !== null);
        assert.ok(values.every((one) => one >= 0));
        assert.equal(values.reduce((sum, one) => sum + one, 0), parts[whole], `${whole} ${moment} ${JSON.stringify(reading)}`);
      }
    }
  }
});
