// Policies: "when X for Y then COMMAND, at most every Z". Off by default, and a dry run at first.

import { api } from "../api.js";
import { firedText, firingText, policiesOf, standOfPolicy, watchText } from "../commands/policy-words.js";
import { el, fill, fillWhenChanged } from "../dom.js";
import { clock, clockWithUtc, plural, ranksText } from "../format.js";
import { dataTable, failedPart } from "./parts.js";
import { PolicyDialog } from "./policy-form.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../messages.js").Policy} Policy */

const EVERY_MS = 3000;

export class Policies {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    /** @type {Policy[] | null} */
    this.policies = null;
    this.most = 64;
    /** @type {Error | null} */
    this.error = null;
    /** Whose firings are shown. @type {string | null} */
    this.chosen = null;
    /** @type {import("../messages.js").PolicyFiring[]} */
    this.firings = [];
    /** The one whose button "Delete…" was pressed once. @type {string | null} */
    this.doomed = null;
    this.asked_ms = -Infinity;
    this.isAsking = false;
    this.problem = el("div", {});
    this.add = el("button", { class: "button", type: "button", click: () => this.edit(null) }, "New policy…");
    this.list = el("div", {});
    this.element = el("div", { class: "body policies" }, el("div", { class: "runs-tools" }, el("p", { class: "ink2" }, "When a condition holds for a while, a policy sends a command. Each begins switched off."), el("span", { class: "spacer" }), this.add), this.problem, this.list);
  }

  /** Why this reader cannot change policies; null when they can. */
  get whyNot() {
    if (this.page.app.link.state !== "open") return "This page is not connected to its server.";
    return this.page.app.scopes.includes("control") ? null : "Your token has no control right. Ask whoever runs the server for one: vramscope token create --scope view,control.";
  }

  update() {
    if (performance.now() - this.asked_ms > EVERY_MS) void this.read();
    this.show();
  }

  async read() {
    if (this.isAsking) return;
    this.isAsking = true;
    this.asked_ms = performance.now();
    try {
      const { policies, most } = await api.policies();
      if (!policies.some((policy) => policy.id === this.chosen)) this.chosen = null;
      this.firings = this.chosen === null ? [] : await api.firings(this.chosen);
      Object.assign(this, { policies, most, error: null });
    } catch (error) {
      this.error = /** @type {Error} */ (error);
    }
    this.isAsking = false;
    this.show();
  }

  show() {
    const { run } = this.page.session;
    if (!run) return;
    const { whyNot } = this;
    const isFull = (this.policies?.length ?? 0) >= this.most;
    this.add.disabled = whyNot !== null || isFull;
    this.add.title = whyNot ?? (isFull ? `The server keeps at most ${this.most} policies.` : "");
    fillWhenChanged(this.problem, this.error?.message ?? "", () => (this.error ? [failedPart("The policies could not be read", this.error, () => void this.read())] : []));
    const { policies } = this;
    if (policies === null) return;
    const mine = policiesOf(policies, run);
    const others = policies.length - mine.length;
    const now_ns = this.page.app.clock.now_ns();
    fillWhenChanged(this.list, JSON.stringify([mine, others, this.chosen, this.doomed, this.firings, whyNot, Math.floor(now_ns / 10e9)]), () => [
      mine.length === 0 ? el("p", { class: "empty-line" }, "No policy watches this run.") : el("ul", {}, ...mine.map((policy) => this.row(policy, run, now_ns))),
      others > 0 ? el("p", { class: "ink3" }, `${plural(others, "policy", "policies")} for other runs.`) : null,
    ]);
  }

  /**
   * @param {Policy} policy
   * @param {import("../messages.js").Run} run
   * @param {number} now_ns
   */
  row(policy, run, now_ns) {
    const stand = standOfPolicy(policy);
    const { whyNot } = this;
    const watch = policy.watching.find((one) => one.run === run.id);
    const button = (/** @type {string} */ text, /** @type {() => void} */ act, /** @type {Record<string, any>} */ more = {}) => el("button", { class: "button", type: "button", disabled: whyNot !== null, title: whyNot, click: act, ...more }, text);
    const isOpen = this.chosen === policy.id;
    return el("li", { "data-tone": stand.tone },
      el("div", { class: "policy-head" },
        button(policy.is_on ? "Switch off" : "Switch on", () => void this.act(() => api.switchPolicy(policy.id, !policy.is_on)), { "aria-label": `${policy.is_on ? "Switch off" : "Switch on"} ${policy.name}` }),
        el("b", {}, policy.name), el("span", { class: "policy-stand" }, stand.text), el("span", { class: "spacer" }),
        el("button", { class: "button", type: "button", "aria-pressed": isOpen ? "true" : "false", click: () => this.choose(isOpen ? null : policy.id) }, "Firings"),
        button("Change…", () => this.edit(policy)), button(this.doomed === policy.id ? "Delete it?" : "Delete…", () => void this.remove(policy), { class: "button danger" })),
      el("p", {}, policy.says),
      el("p", { class: "ink2" }, policy.is_on && watch ? `${watchText(watch, run.world_size)} ` : "", firedText(policy, now_ns), policy.run === null ? " For all runs." : ""),
      isOpen ? this.firingsOf(run) : null);
  }

  /** @param {import("../messages.js").Run} run */
  firingsOf(run) {
    if (this.firings.length === 0) return el("p", { class: "empty-line" }, "It has not fired yet.");
    const rows = this.firings.map((firing) => [el("span", { title: clockWithUtc(firing.time_ns) }, clock(firing.time_ns)), firing.run === run.id ? "this run" : firing.run_name, firing.ranks.length ? ranksText(firing.ranks, firing.run === run.id ? run.world_size : -1) : "run", firing.why, firingText(firing)]);
    return dataTable(["Time", "Run", "Where", "Why", "What came of it"], rows, "Firings");
  }

  /** @param {string | null} id */
  choose(id) {
    this.chosen = id;
    this.firings = [];
    this.asked_ms = -Infinity;
    this.update();
  }

  /** @param {() => Promise<unknown>} change */
  async act(change) {
    try {
      await change();
      fill(this.problem);
      delete this.problem.dataset.key;
    } catch (error) {
      fill(this.problem, failedPart("The policy was not changed", /** @type {Error} */ (error), () => fill(this.problem)));
    }
    this.isAsking = false;
    await this.read();
  }

  /**
   * The second press deletes: what it did stays in the audit log.
   * @param {Policy} policy
   */
  async remove(policy) {
    if (this.doomed === policy.id) {
      this.doomed = null;
      await this.act(() => api.deletePolicy(policy.id));
      return;
    }
    this.doomed = policy.id;
    this.show();
  }

  /** @param {Policy | null} policy */
  edit(policy) {
    const { run } = this.page.session;
    if (run && !document.querySelector("dialog[open]")) new PolicyDialog(run, policy, () => void this.read()).open();
  }
}
