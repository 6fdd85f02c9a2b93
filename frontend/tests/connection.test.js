import assert from "node:assert/strict";
import test from "node:test";
import { Connection } from "../vramscope_frontend/js/connection.js";

const make = () => {
  /** @type {any[]} */
  const sent = [];
  /** @type {any} */
  let handlers = null;
  const connection = new Connection("ws://test", { onLink: () => {}, onHello: () => {} }, (_, given) => {
    handlers = given;
    return /** @type {any} */ ({ send: (/** @type {any} */ request) => sent.push(request), start: () => {}, retryNow: () => {} });
  });
  return { connection, sent, open: () => handlers.onOpen(), frame: (/** @type {any} */ frame) => handlers.onFrame(frame) };
};
const WISH = { type: /** @type {const} */ ("subscribe_run"), run: "r", fields: ["a"], ranks: [0] };

test("after a loss every subscription is made again under a new id, and says that it was", () => {
  const { connection, sent, open, frame } = make();
  /** @type {any[]} */
  const events = [];
  let again = 0;
  open();
  connection.follow({ wish: WISH, onEvent: (event) => events.push(event), onResubscribed: () => again++ });
  const first = sent.at(-1).id;
  open();
  const second = sent.at(-1).id;
  assert.notEqual(first, second);
  assert.equal(again, 1);
  frame({ type: "event", id: first, event: { kind: "old" } });
  frame({ type: "event", id: second, event: { kind: "new" } });
  assert.deepEqual(events, [{ kind: "new" }]);
});

test("ending a subscription names the id that is in force", () => {
  const { connection, sent, open, frame } = make();
  let events = 0;
  const end = connection.follow({ wish: WISH, onEvent: () => events++ });
  open();
  const id = sent.at(-1).id;
  end();
  assert.deepEqual([sent.at(-1).type, sent.at(-1).subscription], ["unsubscribe", id]);
  frame({ type: "event", id, event: { kind: "late" } });
  assert.equal(events, 0);
});

test("a refused subscription reaches whoever made it; unknown frames are ignored", () => {
  const { connection, sent, open, frame } = make();
  let message = "";
  open();
  connection.follow({ wish: WISH, onEvent: () => {}, onError: (error) => (message = error.message) });
  frame({ type: "result", id: sent.at(-1).id, ok: false, error: { code: "not_found", message: "no such run", detail: {} } });
  frame({ type: "from the future" });
  assert.equal(message, "no such run");
});
