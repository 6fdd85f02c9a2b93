// Transport side of the live feed: open, notice that it is gone, come back. What frames mean is
// connection.js.

import { isPermanent, reconnectDelay } from "./backoff.js";

/**
 * How this page stands with its server.
 * @typedef {object} Link
 * @property {"connecting" | "open" | "waiting" | "refused"} state
 * @property {number} attempt 0 until the first loss
 * @property {number} retry_at_ms when the next attempt starts, by performance.now()
 * @property {string} reason
 */

/** No frame for this long, although the page pings: the connection is dead without having closed. */
const SILENCE_MS = 12_000;
const PING_EVERY_MS = 4_000;
const OPEN_WITHIN_MS = 8_000;

export class Socket {
  /**
   * @param {string} url
   * @param {{onOpen: () => void, onFrame: (frame: any) => void, onLink: (link: Link) => void, ping: () => void}} handlers
   * @param {string[]} protocols to offer
   */
  constructor(url, handlers, protocols = []) {
    this.url = url;
    this.protocols = protocols;
    this.handlers = handlers;
    /** @type {Link} */
    this.link = { state: "connecting", attempt: 0, retry_at_ms: 0, reason: "" };
    /** @type {WebSocket | null} */
    this.socket = null;
    this.last_frame_ms = 0;
    this.retry_timer = 0;
    this.watch_timer = 0;
  }

  start() {
    this.connect();
    // A laptop that wakes up, a cable that is back: do not wait for the rest of the delay.
    window.addEventListener("online", () => this.retryNow());
    window.addEventListener("offline", () => this.lose("the network is gone"));
  }

  connect() {
    clearTimeout(this.retry_timer);
    this.setLink({ ...this.link, state: "connecting" });
    const socket = new WebSocket(this.url, this.protocols);
    this.socket = socket;
    const deadline = setTimeout(() => this.lose("no answer"), OPEN_WITHIN_MS);
    socket.addEventListener("message", (message) => {
      if (this.socket !== socket) return;
      this.last_frame_ms = performance.now();
      if (this.link.state !== "open") {
        // Open means that the server spoke, not that a handshake went through.
        clearTimeout(deadline);
        this.setLink({ state: "open", attempt: 0, retry_at_ms: 0, reason: "" });
        this.watch();
        this.handlers.onOpen();
      }
      this.handlers.onFrame(JSON.parse(message.data));
    });
    socket.addEventListener("close", (event) => {
      clearTimeout(deadline);
      if (this.socket !== socket) return;
      if (isPermanent(event.code)) this.refuse(event.reason || `code ${event.code}`);
      else this.lose(event.reason || `code ${event.code}`);
    });
  }

  watch() {
    clearInterval(this.watch_timer);
    this.watch_timer = window.setInterval(() => {
      if (performance.now() - this.last_frame_ms > SILENCE_MS) this.lose("silence");
      else this.handlers.ping();
    }, PING_EVERY_MS);
  }

  /** @param {string} reason */
  lose(reason) {
    this.close();
    const attempt = this.link.attempt + 1;
    const delay_s = reconnectDelay(attempt, Math.random());
    this.setLink({ state: "waiting", attempt, retry_at_ms: performance.now() + delay_s * 1000, reason });
    clearTimeout(this.retry_timer);
    this.retry_timer = window.setTimeout(() => this.connect(), delay_s * 1000);
  }

  /** @param {string} reason */
  refuse(reason) {
    this.close();
    this.setLink({ state: "refused", attempt: this.link.attempt + 1, retry_at_ms: 0, reason });
  }

  close() {
    clearInterval(this.watch_timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  retryNow() {
    if (this.link.state === "waiting" || this.link.state === "refused") this.connect();
  }

  /** @param {import("./messages.js").LiveRequest} request */
  send(request) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(request));
    return true;
  }

  /** @param {Link} link */
  setLink(link) {
    this.link = link;
    this.handlers.onLink(link);
  }
}
