// The audit log: who, from where, what, on which ranks, dry run or not, result. With filters and export.

import { api } from "../api.js";
import { commandTitle } from "../commands/catalogue.js";
import { el, fill, fillWhenChanged } from "../dom.js";
import { clockWithUtc, day, ranksText } from "../format.js";
import { dataTable, failedPart } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../messages.js").AuditRow} AuditRow */

const EVERY_MS = 5000;
const TYPING_MS = 300;
const ORIGINS = { browser: "browser", cli: "command line", api: "API", server: "the server itself", policy: "a policy" };
const SINCE = [{ value: "", text: "all time" }, { value: "3600", text: "last hour" }, { value: "86400", text: "last day" }, { value: "604800", text: "last 7 days" }];

export class Audit {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    /** @type {AuditRow[] | null} */
    this.rows = null;
    /** @type {number | null} */
    this.next = null;
    /** @type {Error | null} */
    this.error = null;
    this.asked_ms = -Infinity;
    this.hasMore = false;
    this.asking = new AbortController();
    this.who = el("input", { type: "search", "aria-label": "Who", placeholder: "Who" });
    this.command = el("input", { type: "search", "aria-label": "Command", placeholder: "Command, as empty_cache" });
    this.since = el("select", { class: "select", "aria-label": "Since" }, ...SINCE.map(({ value, text }) => el("option", { value }, text)));
    this.allRuns = el("input", { type: "checkbox" });
    for (const input of [this.who, this.command]) input.addEventListener("input", () => this.filterSoon());
    for (const input of [this.since, this.allRuns]) input.addEventListener("change", () => this.filter());
    this.csv = el("a", { class: "button", download: "audit.csv" }, "Export CSV");
    this.jsonl = el("a", { class: "button", download: "audit.jsonl" }, "JSON lines");
    this.tools = el("div", { class: "runs-tools audit-tools" }, this.who, this.command, this.since, el("label", { class: "check" }, this.allRuns, "All runs"), el("span", { class: "spacer" }), this.csv, this.jsonl);
    this.problem = el("div", {});
    this.table = el("div", { class: "audit-table", tabindex: 0, role: "region", "aria-label": "Lines of the audit log" });
    this.element = el("div", { class: "body audit" }, this.tools, this.problem, this.table);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.typing = undefined;
  }

  close() {
    this.asking.abort();
    clearTimeout(this.typing);
  }

  get wanted() {
    const seconds = Number(this.since.value);
    return { run: this.allRuns.checked ? null : this.page.id, who: this.who.value.trim() || null, command: this.command.value.trim() || null, since_ns: seconds ? this.page.app.clock.now_ns() - seconds * 1e9 : null };
  }

  update() {
    const mayRead = this.page.app.scopes.includes("control");
    this.tools.hidden = !mayRead;
    if (!mayRead) {
      fillWhenChanged(this.table, "no right", () => [el("p", { class: "empty-line" }, "The audit log needs the control right. Ask whoever runs the server for a token with it: vramscope token create --scope view,control.")]);
      return;
    }
    // Older pages that were asked for stay as they are: what is being read does not move.
    if (!this.hasMore && performance.now() - this.asked_ms > EVERY_MS) void this.read(null);
  }

  filterSoon() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.filter(), TYPING_MS);
  }

  filter() {
    this.hasMore = false;
    void this.read(null);
  }

  /** @param {number | null} before the number of the oldest line that is shown; null is from the newest on */
  async read(before) {
    this.asking.abort();
    const { signal } = (this.asking = new AbortController());
    this.asked_ms = performance.now();
    const { wanted } = this;
    this.csv.href = api.auditAddress(wanted, "csv");
    this.jsonl.href = api.auditAddress(wanted, "jsonl");
    try {
      const { audit, next } = await api.audit({ ...wanted, before, limit: 100 }, signal);
      this.rows = before === null ? audit : [...(this.rows ?? []), ...audit];
      this.next = next;
      this.error = null;
    } catch (error) {
      if (signal.aborted) return;
      this.error = /** @type {Error} */ (error);
    }
    this.show();
  }

  show() {
    fill(this.problem, this.error ? failedPart("The audit log could not be read", this.error, () => this.filter()) : null);
    const { rows } = this;
    if (rows === null) return;
    const now_ns = this.page.app.clock.now_ns();
    const { run } = this.page.session;
    fillWhenChanged(this.table, JSON.stringify([rows, this.next, this.allRuns.checked]), () => {
      if (rows.length === 0) return [el("p", { class: "empty-line" }, "No line fits. Everything that somebody asked a job for is written here, and what came of it.")];
      const withRun = this.allRuns.checked;
      const heads = ["When", "Who", "From", ...(withRun ? ["Run"] : []), "What", "Ranks", "Result"];
      const table = dataTable(heads, rows.map((row) => [el("span", { title: clockWithUtc(row.time_ns) }, day(row.time_ns, now_ns)), row.who || "not known", `${ORIGINS[row.origin] ?? row.origin}${row.address ? `, ${row.address}` : ""}`, ...(withRun ? [row.run_name || row.run || "–"] : []), whatCell(row), row.ranks === "all" ? "all" : row.ranks.length ? el("span", { class: "unbroken" }, ranksText(row.ranks, run?.world_size ?? -1)) : "–", row.result || "not known yet"]), "Audit log");
      const { next } = this;
      const older = next === null ? null : el("p", {}, el("button", { class: "button", type: "button", click: () => this.more(next) }, "Older lines"));
      return [table, older];
    });
  }

  /** @param {number} before */
  more(before) {
    this.hasMore = true;
    void this.read(before);
  }
}

/** @param {AuditRow} row */
function whatCell(row) {
  const params = Object.entries(row.params ?? {}).filter(([, value]) => value !== null && value !== "");
  const isPolicy = row.name.startsWith("policy_");
  const text = isPolicy ? String(row.params?.name ?? "") : params.map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ");
  const title = isPolicy ? { policy_create: "Policy made", policy_change: "Policy changed", policy_on: "Policy switched on", policy_off: "Policy switched off", policy_delete: "Policy deleted" }[row.name] ?? row.name : commandTitle(row.name);
  return el("span", {}, title, row.dry_run ? el("span", { class: "tag" }, "dry run") : null, text ? el("small", { title: text }, text) : null);
}
