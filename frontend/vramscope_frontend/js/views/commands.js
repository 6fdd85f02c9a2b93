// Commands: who did what, and what came of it?

import { CATALOGUE, commandTitle } from "../commands/catalogue.js";
import { receiptSentence, receiptsOf } from "../commands/effects.js";
import { el, fillWhenChanged } from "../dom.js";
import { clock, clockWithUtc, count, known, ranksText } from "../format.js";
import { happenings } from "../marks.js";
import { reasonNotToAct } from "../commands/rights.js";
import { BatchCard } from "./batch-card.js";
import { showHappenings } from "./events.js";
import { moduleReport, moduleTable } from "./module-table.js";
import { dataTable, panel } from "./parts.js";
import { footLine, receiptTable } from "./receipt-table.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../messages.js").Command} Command */

const FINAL = new Set(["done", "failed", "refused", "expired"]);

export class Commands {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.batch = new BatchCard(page);
    this.running = el("div", { class: "body" });
    this.form = el("div", { class: "body" });
    this.history = el("div", { class: "body" });
    this.detail = el("div", { class: "body receipt" });
    this.events = el("div", { class: "body" });
    this.modules = el("div", { class: "body" });
    this.modulesPanel = panel("Memory by module", [], this.modules);
    this.modulesPanel.hidden = true;
    /** @type {string | null} */
    this.picked = null;
    this.element = el("div", { class: "run-grid" },
      el("div", { class: "rail" }, panel("Running", [], this.running), this.modulesPanel, panel("Receipts", [el("span", { class: "context" }, "newest first; dry runs change nothing")], this.history), panel("Events", [], this.events)),
      el("aside", { class: "rail", "aria-label": "Batch size, new command and receipt" }, this.batch.element, panel("New command", [], this.form), panel("Receipt", [], this.detail)));
  }

  close() {
    this.batch.close();
  }

  update() {
    const run = this.page.session.run;
    if (!run) return;
    const commands = [...this.page.session.store.state.commands].reverse();
    this.showRunning(commands.filter((command) => !FINAL.has(command.state)), run);
    this.batch.update();
    this.showForm(run);
    const finished = commands.filter((command) => FINAL.has(command.state));
    this.showHistory(finished, run);
    this.showDetail(finished.find((command) => command.id === this.picked) ?? finished[0] ?? null, run);
    showHappenings(this.events, happenings(this.page.session.store.state.events, this.page.session.store.state.commands, run.world_size), 200);
  }

  /**
   * @param {Command[]} commands
   * @param {import("../messages.js").Run} run
   */
  showRunning(commands, run) {
    const now_ns = this.page.app.clock.now_ns();
    fillWhenChanged(this.running, JSON.stringify(commands.map((command) => [command.id, command.state, Math.ceil((command.deadline_ns - now_ns) / 1e9)])), () =>
      commands.length === 0
        ? [el("p", { class: "empty-line" }, "No command is running.")]
        : [dataTable(["Command", "Ranks", "State", ">Gives up in"], commands.map((command) => [commandTitle(command.name) + (command.dry_run ? ", dry run" : ""), ranksText(command.ranks, run.world_size), command.state, `${Math.max(0, Math.ceil((command.deadline_ns - now_ns) / 1e9))} s`]), "Running commands")]);
  }

  /** @param {import("../messages.js").Run} run */
  showForm(run) {
    const offered = CATALOGUE.filter((entry) => entry.menu !== null);
    const reasons = offered.map((entry) => reasonNotToAct({ run, link: this.page.app.link, scopes: this.page.app.scopes, command: entry.name, needsControl: entry.needsControl }));
    fillWhenChanged(this.form, reasons.join("/"), () => [
      el("ul", { class: "todo" }, ...offered.flatMap((entry, i) => [el("li", {}, el("span", {}), el("span", { class: "what", id: `command-${entry.name}` }, entry.title), el("button", { class: "button", type: "button", "aria-describedby": `command-${entry.name}`, disabled: reasons[i] !== null, title: reasons[i], click: () => this.page.openCommand(entry.name) }, entry.dryRun ? "Dry run…" : entry.needsControl ? "Run…" : "Ask…"), el("p", {}, reasons[i] ?? entry.summary))])),
    ]);
  }

  /**
   * @param {Command[]} commands
   * @param {import("../messages.js").Run} run
   */
  showHistory(commands, run) {
    fillWhenChanged(this.history, JSON.stringify(commands.map((command) => [command.id, command.state])) + this.picked, () => {
      if (commands.length === 0) return [el("p", { class: "empty-line" }, "No command yet. The first one is under More actions, or: ", el("code", {}, `vramscope command ${run.name} memory_summary`))];
      const table = dataTable(["Time", ">Step", "Command", "Ranks", "What came of it", "By"], commands.slice(0, 100).map((command) => {
        const first = receiptsOf(command)[0]?.receipt;
        return [el("span", { title: clockWithUtc(command.finished_ns) }, clock(command.finished_ns ?? command.created_ns)), known(first?.step) ? count(first.step) : "–", commandTitle(command.name) + (command.dry_run ? ", dry run" : ""), el("span", { class: "unbroken" }, ranksText(command.ranks, run.world_size)), el("button", { class: "button link", type: "button", click: () => this.pick(command.id) }, command.dry_run && command.state === "done" ? `Measured: ${receiptSentence(command, run.world_size).replace("returned to", "could return to")}` : receiptSentence(command, run.world_size)), command.issued_by || command.origin];
      }), "Receipts");
      return [table];
    });
  }

  /** @param {string} id */
  pick(id) {
    this.picked = id;
    this.update();
  }

  /**
   * @param {Command | null} command
   * @param {import("../messages.js").Run} run
   */
  showDetail(command, run) {
    this.showModules(command);
    fillWhenChanged(this.detail, `${command?.id}/${command?.state}`, () => {
      if (!command) return [el("p", { class: "empty-line" }, "The receipt of a command shows what it changed, on which rank, at which step.")];
      const first = receiptsOf(command)[0]?.receipt;
      const sentence = command.dry_run ? `${commandTitle(command.name)}, dry run` : receiptSentence(command, run.world_size);
      const reason = first?.message && !sentence.includes(first.message) ? el("p", { class: "reason" }, first.message) : null;
      return [el("h3", {}, sentence), reason, receiptTable(command, run.device_total_bytes, null, false), typeof first?.result === "string" ? el("pre", {}, first.result) : null, el("p", {}, footLine(command))];
    });
  }

  /**
   * What a receipt tells of modules: too wide for the rail.
   * @param {Command | null} command
   */
  showModules(command) {
    const found = command ? receiptsOf(command).flatMap(({ rank, receipt }) => {
      const report = moduleReport(receipt.result);
      return report ? [{ rank, report }] : [];
    }) : [];
    this.modulesPanel.hidden = found.length === 0;
    fillWhenChanged(this.modules, found.length ? `${command?.id}/${found.length}` : "", () => found.map(({ rank, report }) => el("section", { "aria-label": `Rank ${rank}` }, found.length > 1 ? el("h3", {}, `Rank ${rank}`) : null, moduleTable(report))));
  }
}
