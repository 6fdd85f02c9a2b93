// The progress of a command over its ranks: a bar, a count, and who is waited for.

import { el, setAttribute, setText } from "../dom.js";
import { progressOf } from "./progress.js";

export class ProgressBar {
  constructor() {
    this.bar = el("progress", { max: 1, value: 0, "aria-label": "Ranks that have answered" });
    this.text = el("span", {});
    this.waiting = el("span", { class: "context" });
    this.element = el("span", { class: "rank-progress" }, this.bar, this.text, this.waiting);
  }

  /**
   * @param {import("../messages.js").Command} command
   * @param {number} world_size
   */
  update(command, world_size) {
    const progress = progressOf(command, world_size);
    setAttribute(this.bar, "value", progress.share.toFixed(3));
    setText(this.text, progress.text);
    setText(this.waiting, progress.waiting);
    return progress;
  }
}
