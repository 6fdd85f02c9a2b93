// Commands that are on their way: how far on which ranks, and until when.

import { commandTitle } from "../commands/catalogue.js";
import { receiptsOf } from "../commands/effects.js";
import { ProgressBar } from "../commands/progress-bar.js";
import { el, setText } from "../dom.js";
import { clock, ranksText } from "../format.js";

/** @typedef {import("../messages.js").Command} Command */

export class RunningCommands {
  constructor() {
    this.empty = el("p", { class: "empty-line" }, "No command is running.");
    this.list = el("ul", { class: "running-commands" });
    this.element = el("div", { class: "body" }, this.empty, this.list);
    /** @type {Map<string, {row: HTMLElement, bar: ProgressBar, words: HTMLElement}>} */
    this.rows = new Map();
  }

  /**
   * @param {Command[]} commands that have not ended, newest first
   * @param {number} world_size
   * @param {number} now_ns
   */
  update(commands, world_size, now_ns) {
    this.empty.hidden = commands.length > 0;
    for (const [id, { row }] of this.rows) {
      if (commands.some((command) => command.id === id)) continue;
      row.remove();
      this.rows.delete(id);
    }
    for (const command of commands) {
      const { bar, words } = this.rows.get(command.id) ?? this.add(command, world_size);
      bar.update(command, world_size);
      setText(words, wordsOf(command, now_ns));
    }
  }

  /**
   * @param {Command} command
   * @param {number} world_size
   */
  add(command, world_size) {
    const bar = new ProgressBar();
    const words = el("span", { class: "context" });
    const row = el("li", { "data-id": command.id }, el("b", {}, commandTitle(command.name) + (command.dry_run ? ", dry run" : "")), el("span", {}, ranksText(command.ranks, world_size)), bar.element, words);
    this.list.prepend(row);
    const made = { row, bar, words };
    this.rows.set(command.id, made);
    return made;
  }
}

/**
 * @param {Command} command
 * @param {number} now_ns
 */
function wordsOf(command, now_ns) {
  const told = receiptsOf(command).map(({ receipt }) => (receipt.state === "running" ? receipt.message : "")).find(Boolean);
  if (told) return told;
  const left_s = Math.ceil((command.deadline_ns - now_ns) / 1e9);
  const by = command.issued_by ? `by ${command.issued_by}, ` : "";
  if (command.state === "running") return `${by}since ${clock(command.created_ns)}`;
  return left_s > 0 ? `${by}gives up in ${left_s} s` : `${by}its time is over`;
}
