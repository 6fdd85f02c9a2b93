// What can be asked of the job, in groups: the job's own commands first, then those of every job.

import { GROUPS, needsAllRanks } from "../commands/catalogue.js";
import { liveRanks, reasonNotToAct } from "../commands/rights.js";
import { ownCommands } from "../commands/user-commands.js";
import { el, fillWhenChanged } from "../dom.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../commands/catalogue.js").CommandEntry} CommandEntry */
/** @typedef {{title: string, rows: {entry: CommandEntry, reason: string | null, note: string | null}[]}} Group */

export class CommandForms {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.element = el("div", { class: "body command-forms" });
    /** Groups that the reader has opened or closed. @type {Map<string, boolean>} */
    this.opened = new Map();
  }

  update() {
    const groups = this.groups();
    const shared = sharedReason(groups);
    fillWhenChanged(this.element, JSON.stringify(groups), () => [shared ? el("p", { class: "why-not" }, shared) : null, ...groups.map((group, i) => this.group(group, i === 0, shared))]);
  }

  /** @returns {Group[]} */
  groups() {
    const { run } = this.page.session;
    if (!run) return [];
    const row = (/** @type {CommandEntry} */ entry, /** @type {string | null} */ note = null) => ({ entry, note, reason: reasonNotToAct({ run, link: this.page.app.link, scopes: this.page.app.scopes, command: entry.name, needsControl: entry.needsControl, wholeRun: needsAllRanks(entry) }) });
    const own = ownCommands(liveRanks(run), run.world_size).map(({ entry, differs }) => row(entry, differs));
    const others = GROUPS.map(({ title, entries }) => ({ title, rows: entries.filter((entry) => entry.menu !== null).map((entry) => row(entry)) }));
    return [...(own.length ? [{ title: "This job's own", rows: own }] : []), ...others];
  }

  /**
   * @param {Group} group
   * @param {boolean} isFirst
   * @param {string | null} shared
   */
  group({ title, rows }, isFirst, shared) {
    const details = el("details", { open: this.opened.get(title) ?? isFirst }, el("summary", {}, title, el("span", { class: "count" }, String(rows.length))), el("ul", { class: "todo" }, ...rows.map((row) => this.row(row, shared))));
    details.addEventListener("toggle", () => this.opened.set(title, details.open));
    return details;
  }

  /**
   * @param {Group["rows"][number]} row
   * @param {string | null} shared
   */
  row({ entry, reason, note }, shared) {
    const id = `command-${entry.name}`;
    const text = reason !== null && reason !== shared ? reason : entry.summary;
    return el("li", {}, el("span", {}), el("span", { class: "what", id }, entry.title), el("button", { class: entry.dangerous ? "button danger" : "button", type: "button", "aria-describedby": id, disabled: reason !== null, title: reason, click: () => this.page.openCommand(entry.name) }, entry.dryRun ? "Dry run…" : entry.needsControl ? "Run…" : "Ask…"), el("p", {}, text), note ? el("p", { class: "note" }, note) : null);
  }
}

/**
 * A reason that turns off most of them is said once.
 * @param {Group[]} groups
 */
function sharedReason(groups) {
  /** @type {Map<string, number>} */
  const times = new Map();
  for (const { reason } of groups.flatMap(({ rows }) => rows)) if (reason !== null) times.set(reason, (times.get(reason) ?? 0) + 1);
  const [most] = [...times].sort((a, b) => b[1] - a[1]);
  return most && most[1] > 3 ? most[0] : null;
}
