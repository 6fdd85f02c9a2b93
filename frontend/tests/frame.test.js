import assert from "node:assert/strict";
import test from "node:test";
import { framed, frameOf, isOver, protocolsOf, unframed } from "../vramscope_frontend/js/frame.js";

test("the address of a frame says what it may ask with, and until when", () => {
  const frame = frameOf("/frame/r1/ranks", "#token=vs_a-B&until=1790000000");
  assert.deepEqual(frame, { token: "vs_a-B", until_ms: 1790000000000 });
  assert.deepEqual(frameOf("/frame/r1", "#token=vs_a"), { token: "vs_a", until_ms: Infinity });
  assert.equal(frameOf("/runs/r1", "#token=vs_a"), null);
});

test("a frame is over without a token, and from its end on", () => {
  assert.equal(isOver({ token: "", until_ms: Infinity }, 0), true);
  assert.equal(isOver({ token: "t", until_ms: 100 }, 99), false);
  assert.equal(isOver({ token: "t", until_ms: 100 }, 100), true);
});

test("links of the page lead on within the frame, or nowhere", () => {
  assert.equal(framed("/runs/a%2Fb/ranks?x=time"), "/frame/a%2Fb/ranks?x=time");
  assert.equal(framed("/"), null);
  assert.equal(unframed("/frame/a%2Fb/ranks"), "/runs/a%2Fb/ranks");
  assert.equal(unframed("/runs/a"), "/runs/a");
});

test("a websocket offers the token as a subprotocol beside the one that is spoken", () => {
  assert.deepEqual(protocolsOf({ token: "vs_a", until_ms: 1 }), ["vramscope", "vramscope.token.vs_a"]);
});
