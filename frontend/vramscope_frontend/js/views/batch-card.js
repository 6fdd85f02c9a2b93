// The card of the batch advisor: how large a batch fits, what that rests on, one click to set it.

import { api } from "../api.js";
import { choices, exactPeak, facts, headline, isProbing, probeText } from "../batch-fit.js";
import { commandEntry } from "../commands/catalogue.js";
import { el, fillWhenChanged } from "../dom.js";
import { failedPart, panel } from "./parts.js";
import { ProbeDialog } from "./probe-dialog.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../batch-fit.js").BatchAnswer} BatchAnswer */
/** @typedef {import("../batch-fit.js").BatchAdvice} BatchAdvice */

const COMMAND = "set_batch_size";
const RECORD = "history_start";
const EVERY_MS = 5000;
/** While a probe or a replay is under way. */
const SOON_MS = 1000;

export class BatchCard {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.body = el("div", { class: "body batch-card" });
    this.element = panel("Largest batch", [el("span", { class: "context" }, "that leaves 5 % free")], this.body);
    /** @type {BatchAnswer | null} */
    this.answer = null;
    /** @type {Error | null} */
    this.error = null;
    this.asking = false;
    this.due_ms = 0;
    this.aborting = new AbortController();
  }

  close() {
    this.aborting.abort();
  }

  /** Called by the page when anything changed; asks again from time to time. */
  update() {
    if (!this.asking && performance.now() >= this.due_ms && this.page.app.link.state === "open") void this.ask();
    this.show();
  }

  async ask() {
    this.asking = true;
    try {
      this.answer = await api.batch(this.page.session.id, this.aborting.signal);
      this.error = null;
    } catch (error) {
      if (this.aborting.signal.aborted) return;
      this.error = /** @type {Error} */ (error);
    } finally {
      this.asking = false;
    }
    const isSoon = this.answer !== null && (this.answer.is_replaying || isProbing(this.answer.probing));
    const isOver = this.page.session.run?.state === "ended" && !isSoon;
    this.due_ms = isOver ? Infinity : performance.now() + (isSoon ? SOON_MS : EVERY_MS);
    this.show();
  }

  /** Why nothing can be set now; null when it can. */
  get reason() {
    const { app, actions, session } = this.page;
    return commandEntry(COMMAND) ? actions.reasonOf(COMMAND, session.run, app.link, app.scopes) : "This page does not know the command.";
  }

  show() {
    const { answer, error, reason } = this;
    fillWhenChanged(this.body, JSON.stringify([answer, error?.message, reason]), () => {
      if (!answer) return [error ? failedPart("The advice on the batch size", error, () => void this.ask()) : el("p", { class: "empty-line" }, "Looking at the steps…")];
      if (!answer.advice) return [el("p", { class: "empty-line" }, answer.silent?.text ?? "")];
      return [...this.number(answer.advice), this.actions(answer, reason), ...this.basis(answer)];
    });
  }

  /** @param {BatchAdvice} advice */
  number(advice) {
    const { number, range, confidence } = headline(advice);
    return [
      el("p", { class: "batch-number", "aria-label": advice.sentence }, el("strong", {}, number), el("span", {}, [range, confidence].filter(Boolean).join(", "))),
      el("dl", { class: "batch-facts" }, ...facts(advice).flatMap(([what, much]) => [el("dt", {}, what), el("dd", { title: what.startsWith("Peak") ? exactPeak(advice) : null }, much)])),
    ];
  }

  /**
   * @param {BatchAnswer} answer
   * @param {string | null} reason
   */
  actions({ advice, probe, probing }, reason) {
    if (!advice) return null;
    const busy = isProbing(probing);
    const why = reason ?? (busy ? "A probe is under way." : null);
    const offered = choices(advice);
    const buttons = offered.map(({ label, params }, i) => el("button", { class: i === 0 ? "button primary" : "button", type: "button", disabled: why !== null, title: why, click: () => this.page.openCommand(COMMAND, undefined, params) }, label));
    const ask = probe ? el("button", { class: "button", type: "button", disabled: why !== null, title: why, click: () => this.openProbe() }, `Probe ${probe.steps} steps with ${probe.batch_size}…`) : null;
    const record = advice.is_replayed ? null : this.recordButton();
    const stop = busy && reason === null ? el("button", { class: "button small", type: "button", click: () => void this.endProbe() }, "Set back now") : null;
    const told = probeText(probing);
    return el("div", { class: "batch-actions" }, el("p", { class: "buttons" }, ...buttons, ask, record), ...offered.filter(({ note }) => note).slice(0, 1).map(({ note }) => el("p", { class: "sub" }, note)), reason === null ? null : el("p", { class: "sub" }, reason), told ? el("p", { class: probing?.state === "failed" ? "problem" : "sub", role: "status" }, told, " ", stop) : null);
  }

  /** What lies unused between blocks is only known from a recording. */
  recordButton() {
    const { app, actions, session } = this.page;
    const why = actions.reasonOf(RECORD, session.run, app.link, app.scopes);
    return el("button", { class: "button", type: "button", disabled: why !== null, title: why, click: () => this.page.openCommand(RECORD, undefined, { steps: 2 }) }, "Record 2 steps…");
  }

  /** @param {BatchAnswer} answer */
  basis({ advice, is_replaying }) {
    if (!advice) return [];
    const open = [advice.open_question, is_replaying && !advice.is_replayed ? "A recorded window is being replayed at larger sizes." : ""].filter(Boolean);
    return [el("ul", { class: "batch-basis" }, ...advice.basis.map((line) => el("li", {}, line))), ...open.map((line) => el("p", { class: "sub" }, line))];
  }

  openProbe() {
    if (this.answer?.probe && !document.querySelector("dialog[open]")) new ProbeDialog(this.page.session, this.answer.probe, () => this.askNow()).open();
  }

  async endProbe() {
    try {
      await api.endProbe(this.page.session.id);
    } catch (error) {
      this.page.showTrouble("The probe goes on", /** @type {Error} */ (error));
    }
    this.askNow();
  }

  askNow() {
    this.due_ms = 0;
    this.update();
  }
}
