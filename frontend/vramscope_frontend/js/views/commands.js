// Commands: who did what, and what came of it? What runs, what can be asked, receipts, policies, audit.

import { commandTitle } from "../commands/catalogue.js";
import { changesOf } from "../commands/changes.js";
import { resultText } from "../commands/dialog-body.js";
import { isAboutMemory, receiptSentence, receiptsOf } from "../commands/effects.js";
import { el, fillWhenChanged } from "../dom.js";
import { clock, clockWithUtc, count, known, ranksText } from "../format.js";
import { happenings } from "../marks.js";
import { Audit } from "./audit.js";
import { BatchCard } from "./batch-card.js";
import { CommandForms } from "./command-forms.js";
import { showHappenings } from "./events.js";
import { moduleReport, moduleTable } from "./module-table.js";
import { dataTable, panel, Segmented } from "./parts.js";
import { Policies } from "./policies.js";
import { footLine, receiptTable } from "./receipt-table.js";
import { RunningCommands } from "./running-commands.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../messages.js").Command} Command */
/** @typedef {import("../messages.js").Run} Run */
/** @typedef {"receipts" | "policies" | "audit"} Part */

const FINAL = new Set(["done", "failed", "refused", "expired"]);
const PARTS = /** @type {Part[]} */ (["receipts", "policies", "audit"]);

export class Commands {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    const asked = /** @type {Part} */ (page.app.router.place.view.get("show"));
    /** @type {Part} */
    this.part = PARTS.includes(asked) ? asked : "receipts";
    this.running = new RunningCommands();
    this.forms = new CommandForms(page);
    this.batch = new BatchCard(page);
    this.policies = new Policies(page);
    this.audit = new Audit(page);
    this.history = el("div", { class: "body" });
    this.detail = el("div", { class: "body receipt" });
    this.receipt = panel("Receipt", [], this.detail);
    this.events = el("div", { class: "body" });
    this.modules = el("div", { class: "body" });
    this.modulesPanel = panel("Memory by module", [], this.modules);
    this.modulesPanel.hidden = true;
    /** @type {string | null} */
    this.picked = null;
    this.parts = new Segmented("What is listed", [{ value: "receipts", text: "Receipts" }, { value: "policies", text: "Policies" }, { value: "audit", text: "Audit log" }], (part) => this.show(part));
    this.listed = panel("Listed", [this.parts.element], this.history, this.policies.element, this.audit.element);
    this.listed.querySelector("h2")?.remove();
    this.element = el("div", { class: "run-grid" },
      el("div", { class: "rail" }, panel("Running", [], this.running.element), this.modulesPanel, this.listed, panel("Events", [], this.events)),
      el("aside", { class: "rail acting-rail", "aria-label": "Receipt and new command" }, this.receipt, panel("New command", [], this.forms.element), this.batch.element));
    this.show(this.part);
  }

  close() {
    this.audit.close();
    this.batch.close();
  }

  /** @param {Part} part */
  show(part) {
    this.part = part;
    this.parts.choose(part);
    this.page.app.router.note({ show: part === "receipts" ? null : part });
    this.history.hidden = part !== "receipts";
    this.policies.element.hidden = part !== "policies";
    this.audit.element.hidden = part !== "audit";
    this.update();
  }

  update() {
    const { run } = this.page.session;
    if (!run) return;
    const commands = [...this.page.session.store.state.commands].reverse();
    this.running.update(commands.filter((command) => !FINAL.has(command.state)), run.world_size, this.page.app.clock.now_ns());
    this.forms.update();
    this.batch.update();
    const finished = commands.filter((command) => FINAL.has(command.state));
    if (this.part === "receipts") this.showHistory(finished, run);
    else if (this.part === "policies") this.policies.update();
    else this.audit.update();
    this.showDetail(finished.find((command) => command.id === this.picked) ?? finished[0] ?? null, run);
    showHappenings(this.events, happenings(this.page.session.store.state.events, this.page.session.store.state.commands, run.world_size), 200);
  }

  /**
   * @param {Command[]} commands
   * @param {Run} run
   */
  showHistory(commands, run) {
    fillWhenChanged(this.history, JSON.stringify(commands.map((command) => [command.id, command.state])) + this.picked, () => {
      if (commands.length === 0) return [el("p", { class: "empty-line" }, "No command yet. The first one is under More actions, or: ", el("code", {}, `vramscope command ${run.name} memory_summary`))];
      return [dataTable(["Time", ">Step", "Command", "Ranks", "What came of it", "By"], commands.slice(0, 100).map((command) => this.historyRow(command, run)), "Receipts")];
    });
  }

  /**
   * @param {Command} command
   * @param {Run} run
   */
  historyRow(command, run) {
    const step = receiptsOf(command).map(({ receipt }) => receipt.step).find(known);
    const sentence = receiptSentence(command, run.world_size);
    const words = command.dry_run && command.state === "done" ? `Measured: ${sentence.replace("returned to", "could return to")}` : sentence;
    return [
      el("span", { title: clockWithUtc(command.finished_ns) }, clock(command.finished_ns ?? command.created_ns)),
      known(step) ? count(step) : "–",
      el("span", {}, commandTitle(command.name), command.dry_run ? el("span", { class: "tag" }, "dry run") : null),
      el("span", { class: "unbroken" }, ranksText(command.ranks, run.world_size)),
      el("button", { class: command.state === "done" ? "button link" : "button link not-done", type: "button", "aria-pressed": this.picked === command.id ? "true" : "false", click: () => this.pick(command.id) }, words),
      command.issued_by ? `${command.issued_by}${command.origin === "policy" ? " (policy)" : ""}` : command.origin,
    ];
  }

  /** @param {string} id */
  pick(id) {
    this.picked = id;
    this.update();
  }

  /**
   * @param {Command | null} command
   * @param {Run} run
   */
  showDetail(command, run) {
    this.showModules(command);
    this.receipt.hidden = command === null;
    this.receipt.classList.toggle("amber", command !== null && command.state !== "done");
    fillWhenChanged(this.detail, `${command?.id}/${command?.state}`, () => {
      if (!command) return [];
      const first = receiptsOf(command)[0]?.receipt;
      const sentence = command.dry_run && command.state === "done" ? `${commandTitle(command.name)}, dry run` : receiptSentence(command, run.world_size);
      const reason = first?.message && !sentence.includes(first.message) ? el("p", { class: "reason" }, first.message) : null;
      const hasNumbers = isAboutMemory(command) || changesOf(command).length > 0;
      const answer = first && !hasNumbers && first.result !== null && first.result !== undefined && !moduleReport(first.result) ? resultText("", first) : null;
      return [el("h3", {}, sentence), reason, receiptTable(command, run.device_total_bytes, null, false), answer, el("p", {}, footLine(command))];
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
