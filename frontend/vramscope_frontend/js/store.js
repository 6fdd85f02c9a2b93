// State and its listeners: the one way in which views learn that something changed.

/** @template {object} T */
export class Store {
  /** @param {T} initial */
  constructor(initial) {
    this.state = initial;
    /** @type {Set<(state: T, changed: (keyof T)[]) => void>} */
    this.listeners = new Set();
  }

  /**
   * Replace some fields; listeners run before this returns.
   * @param {Partial<T>} patch
   */
  set(patch) {
    const changed = /** @type {(keyof T)[]} */ (Object.keys(patch)).filter((key) => this.state[key] !== patch[key]);
    if (changed.length === 0) return;
    this.state = { ...this.state, ...patch };
    for (const listener of [...this.listeners]) listener(this.state, changed);
  }

  /**
   * @param {(state: T, changed: (keyof T)[]) => void} listener
   * @returns {() => void} ends it
   */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
