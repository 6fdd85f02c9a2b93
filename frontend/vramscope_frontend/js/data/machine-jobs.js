// The training processes of the server's machine, asked for only while somebody looks at them.

import { api } from "../api.js";

/** @typedef {import("../messages.js").MachineJob} MachineJob */

const EVERY_MS = 3000;

export class MachineJobs {
  /**
   * @param {() => boolean} mayAsk whether this server tells them to this page
   * @param {() => void} onChange
   */
  constructor(mayAsk, onChange) {
    this.mayAsk = mayAsk;
    this.onChange = onChange;
    /** @type {MachineJob[] | null} */
    this.jobs = null;
    /** @type {Error | null} */
    this.error = null;
    this.timer = 0;
    this.asking = false;
  }

  get isAllowed() {
    return this.mayAsk();
  }

  /** Look from now on; looking twice is looking once. */
  look() {
    if (this.timer) return;
    this.timer = window.setInterval(() => void this.ask(), EVERY_MS);
    void this.ask();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
  }

  async ask() {
    if (this.asking || document.hidden || !this.mayAsk()) return;
    this.asking = true;
    try {
      this.jobs = (await api.machineJobs()).jobs;
      this.error = null;
    } catch (error) {
      this.error = /** @type {Error} */ (error);
    } finally {
      this.asking = false;
    }
    this.onChange();
  }
}
