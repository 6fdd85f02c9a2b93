import assert from "node:assert/strict";
import test from "node:test";
import { holderRows, holdersOf } from "../../vramscope_frontend/js/commands/held.js";

/** @returns {any} */
const command = (/** @type {any[]} */ ...told) => ({ receipts: Object.fromEntries(told.map((held_by, rank) => [rank, { state: "done", result: { held_by } }])) });
const MIB = 2 ** 20;

test("holders of all ranks are added up, largest first", () => {
  const found = holdersOf(command([{ what: "train.py:56", bytes: 3 * MIB, segments: 2 }, { what: "a", bytes: MIB, segments: 1 }], [{ what: "a", bytes: 9 * MIB, segments: 4 }]));
  assert.deepEqual(found, [{ what: "a", bytes: 10 * MIB, segments: 5 }, { what: "train.py:56", bytes: 3 * MIB, segments: 2 }]);
  assert.deepEqual(holderRows(found)[0], ["a", "10.0 MiB", "5 segments"]);
});

test("the small ones are one row, and what is not told is nobody", () => {
  const rows = holderRows(holdersOf(command(Array.from({ length: 9 }, (_, i) => ({ what: `line ${i}`, bytes: MIB, segments: 1 })))));
  assert.deepEqual([rows.length, rows.at(-1)?.[0], rows.at(-1)?.[1]], [6, "4 more", "4.0 MiB"]);
  assert.deepEqual(holdersOf(command("no list", [{ what: 3 }])), []);
});
