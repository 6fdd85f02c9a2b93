import assert from "node:assert/strict";
import test from "node:test";
import { pathOf, placeOf } from "../vramscope_frontend/js/router.js";

test("addresses lead to pages and back", () => {
  for (const page of /** @type {const} */ (["overview", "ranks", "findings", "map", "snapshots", "commands", "about"])) {
    const place = placeOf(pathOf(page, "a/b c"), "");
    assert.deepEqual([place.page, place.run], [page, "a/b c"]);
  }
  const place = placeOf(pathOf("snapshot", "a b", "2/3"), "?at=7");
  assert.deepEqual([place.page, place.run, place.snapshot, place.view.get("at")], ["snapshot", "a b", "2/3", "7"]);
  const report = placeOf(pathOf("oom", "a b", "2/3"), "");
  assert.deepEqual([report.page, report.snapshot], ["oom", "2/3"]);
  assert.equal(placeOf("/", "?q=x").view.get("q"), "x");
  assert.equal(placeOf("/runs", "").page, "runs");
});

test("an unknown address is missing, not the list", () => {
  assert.equal(placeOf("/runs/x/nothing", "").page, "missing");
  assert.equal(placeOf("/runs/x/ranks/1", "").page, "missing");
  assert.equal(placeOf("/runs/x/snapshots/1/2", "").page, "missing");
  assert.equal(placeOf("/elsewhere", "").page, "missing");
  assert.deepEqual(["/runs/%zz/map", "/runs/x/snapshots/%E0%A4%A"].map((address) => placeOf(address, "").page), ["missing", "missing"]);
});
