import assert from "node:assert/strict";
import test from "node:test";
import { fitOf, parseSize, roomOf, roundedRequest, segmentFor } from "../../vramscope_frontend/js/map/fits.js";
import { mapFacts } from "../../vramscope_frontend/js/map/map-facts.js";
import { mapOf, MIB } from "./made-map.js";

const fit = (/** @type {import("./made-map.js").Made[]} */ made, /** @type {number} */ mib, /** @type {number | null} */ room_mib) => {
  const segments = [...mapOf(made).segments.values()];
  return fitOf(segments, mib * MIB, mapFacts(segments), room_mib === null ? null : room_mib * MIB);
};

test("sizes are rounded as the allocator does", () => {
  assert.deepEqual([1, 512, 513].map(roundedRequest), [512, 512, 1024]);
  assert.deepEqual([MIB, MIB + 512, 10 * MIB, 10 * MIB + 512, 198 * MIB].map(segmentFor), [2 * MIB, 20 * MIB, 10 * MIB, 12 * MIB, 198 * MIB]);
});

test("the smallest free block that is large enough takes it", () => {
  const found = fit([{ address: 0, blocks: "a1 f8 a1 f4 a1 f9" }], 4, 0);
  assert.deepEqual([found.kind, found.place?.index], ["block", 3]);
});

test("not in a private pool, not on another stream, and small requests not in the large pool", () => {
  assert.equal(fit([{ address: 0, blocks: "a1 f8", flags: 5 }], 4, 0).kind, "nowhere");
  assert.equal(fit([{ address: 0, blocks: "a9" }, { address: 2e9, blocks: "f24", stream: 3 }], 4, 0).kind, "flush");
  assert.equal(fit([{ address: 0, blocks: "a1 f8" }], 0.5, 0).kind, "nowhere");
  assert.equal(fit([{ address: 0, blocks: "a1 f1", flags: 0 }], 0.5, 0).kind, "block");
});

test("else a new segment, else one once the cache went back, else nowhere", () => {
  const made = [{ address: 0, blocks: "a1 f9" }, { address: 2e9, blocks: "f8", stream: 0, flags: 0 }];
  assert.deepEqual([12, 24].map((room) => fit(made, 16, room).kind), ["flush", "segment"]);
  assert.equal(fit(made, 16, 7).kind, "nowhere");
  assert.equal(fit(made, 16, null).kind, "unknown");
  assert.equal(fit(made, 16, 24).needs, 16 * MIB);
  assert.equal(fit(made, 9.5, 24).kind, "segment");
  assert.equal(fit(made, 9.5, 24).needs, 20 * MIB);
});

test("an expandable segment grows by what its free end lacks, in pages", () => {
  const found = fit([{ address: 0, blocks: "a30 f10", flags: 3, page_bytes: 20 * MIB }], 35, 40);
  assert.deepEqual([found.kind, found.needs], ["grow", 40 * MIB]);
  assert.equal(fit([{ address: 0, blocks: "a30 f10", flags: 3, page_bytes: 20 * MIB }], 35, 39).kind, "nowhere");
});

test("what is left is the lower of what the device has and what the process may have", () => {
  assert.equal(roomOf({ limit_bytes: 100, device_free_bytes: 30 }, 80), 20);
  assert.equal(roomOf({ limit_bytes: 100, device_free_bytes: 10 }, 80), 10);
  assert.equal(roomOf({ limit_bytes: 100, device_free_bytes: null }, 180), 0);
  assert.equal(roomOf({ limit_bytes: null, device_free_bytes: null }, 80), null);
});

test("sizes as people write them", () => {
  assert.deepEqual(["198 MiB", "1.5g", "4096", "2k", "1,024 MB", "12 bytes"].map(parseSize), [198 * MIB, 1.5 * 1024 * MIB, 4096, 2048, 1024 * MIB, 12]);
  assert.deepEqual(["", "many", "-1", "0", "1 tib"].map(parseSize), [null, null, null, null, null]);
});
