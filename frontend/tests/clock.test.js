import assert from "node:assert/strict";
import test from "node:test";
import { ServerClock } from "../vramscope_frontend/js/clock.js";

test("time goes on from what the server said, by a clock that does not jump", () => {
  let ms = 1000;
  const clock = new ServerClock(() => ms);
  clock.set(5e18);
  ms += 2000;
  assert.equal(clock.now_ns(), 5e18 + 2e9);
});
