import assert from "node:assert/strict";
import test from "node:test";
import { pathOf, placeOf } from "../vramscope_frontend/js/router.js";

test("addresses lead to pages and back", () => {
  for (const page of /** @type {const} */ (["overview", "ranks", "commands", "about"])) {
    const place = placeOf(pathOf(page, "a/b c"), "");
    assert.deepEqual([place.page, place.run], [page, "a/b c"]);
  }
  assert.equal(placeOf("/", "?q=x").view.get("q"), "x");
  assert.equal(placeOf("/runs", "").page, "runs");
});

test("an unknown address is missing, not the list", () => {
  assert.equal(placeOf("/runs/x/map", "").page, "missing");
  assert.equal(placeOf("/elsewhere", "").page, "missing");
});
