// Meaning side of the live feed: ids, subscriptions, and subscribing again after a loss.

import { Socket } from "./socket.js";

/** @typedef {import("./messages.js").LiveEvent} LiveEvent */
/** @typedef {import("./messages.js").LiveHello} LiveHello */
/** @typedef {import("./messages.js").ErrorBody} ErrorBody */
/** @typedef {import("./socket.js").Link} Link */
/** @typedef {{type: "subscribe_runs"} | {type: "subscribe_run", run: string, fields: string[], ranks: number[] | null, map?: number}} Wish */

/**
 * @typedef {object} Follower
 * @property {Wish} wish
 * @property {(event: LiveEvent) => void} onEvent
 * @property {(error: ErrorBody) => void} [onError]
 * @property {() => void} [onResubscribed] after a loss: what happened in between must be fetched
 */

export class Connection {
  /**
   * @param {string} url
   * @param {{onLink: (link: Link) => void, onHello: (hello: LiveHello) => void}} handlers
   * @param {(url: string, handlers: any) => Socket} [open]
   */
  constructor(url, handlers, open = (address, socketHandlers) => new Socket(address, socketHandlers)) {
    this.handlers = handlers;
    this.next_id = 1;
    /** @type {Map<number, Follower>} */
    this.followers = new Map();
    this.opened = 0;
    this.socket = open(url, {
      onOpen: () => this.subscribeAgain(),
      onFrame: (/** @type {any} */ frame) => this.take(frame),
      onLink: handlers.onLink,
      ping: () => this.socket.send({ type: "ping", id: this.next_id++ }),
    });
  }

  start() {
    this.socket.start();
  }

  retryNow() {
    this.socket.retryNow();
  }

  /**
   * Follow something until the returned function is called; survives losses of the connection.
   * @param {Follower} follower
   * @returns {() => void}
   */
  follow(follower) {
    let id = this.next_id++;
    const entry = { ...follower };
    this.followers.set(id, entry);
    this.socket.send({ ...follower.wish, id });
    return () => {
      // After a reconnect the same follower goes by another id.
      for (const [current, one] of this.followers) if (one === entry) id = current;
      this.followers.delete(id);
      this.socket.send({ type: "unsubscribe", id: this.next_id++, subscription: id });
    };
  }

  subscribeAgain() {
    const again = this.opened++ > 0;
    const followers = [...this.followers.values()];
    this.followers.clear();
    for (const follower of followers) {
      const id = this.next_id++;
      this.followers.set(id, follower);
      this.socket.send({ ...follower.wish, id });
      if (again) follower.onResubscribed?.();
    }
  }

  /** @param {any} frame */
  take(frame) {
    switch (frame.type) {
      case "hello":
        this.handlers.onHello(frame);
        break;
      case "event":
        // An event of a subscription that has just ended may still be on its way.
        this.followers.get(frame.id)?.onEvent(frame.event);
        break;
      case "result":
        if (!frame.ok) this.followers.get(frame.id)?.onError?.(frame.error);
        break;
      default:
        // A newer server may say more than this page understands.
        break;
    }
  }
}
