// The server's clock as this page knows it: ages must not depend on the reader's own clock.

export class ServerClock {
  /** @param {() => number} monotonic_ms */
  constructor(monotonic_ms = () => performance.now()) {
    this.monotonic_ms = monotonic_ms;
    /** @type {number | null} */
    this.server_ns = null;
    this.at_ms = 0;
  }

  /**
   * The server said what time it is.
   * @param {number} server_time_ns
   */
  set(server_time_ns) {
    this.server_ns = server_time_ns;
    this.at_ms = this.monotonic_ms();
  }

  /** Nanoseconds since the epoch by the server; by this machine until the server has said. */
  now_ns() {
    if (this.server_ns === null) return Date.now() * 1e6;
    return this.server_ns + (this.monotonic_ms() - this.at_ms) * 1e6;
  }
}
