// Runs: which run needs me?

import { api } from "../api.js";
import { spark } from "../charts/spark.js";
import { el, fill, fillWhenChanged, setAttribute, setText } from "../dom.js";
import { DEVICE_USED, RESERVED } from "../fields.js";
import { age, count, day, exactBytes, gib, known } from "../format.js";
import { devicesText } from "../limits.js";
import { pathOf } from "../router.js";
import { headroomSeverity, pillOf } from "../run-state.js";
import { matches, passes, runRow, sortRows } from "../runs-model.js";
import { verdictOverRuns } from "../runs-verdict.js";
import { openAttachDialog } from "./attach-dialog.js";
import { failedPart, Segmented } from "./parts.js";
import { richText } from "./rich-text.js";
import { FirstStart } from "./runs-empty.js";
import { VerdictView } from "./verdict.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../messages.js").Run} Run */
/** @typedef {import("../runs-model.js").RunRow} RunRow */
/** @typedef {{values: (number | null)[], highest: number | null, fetched_ms: number}} Trend */

const TICK_MS = 1000;
const TREND_POINTS = 44;
const TREND_EVERY_MS = 10_000;
const MOST_ROWS = 200;
const SHAPES = { live: "dot", waiting: "ring", stale: "ring", lost: "cross", ended: "square" };

export class Runs {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Run[] | null} */
    this.runs = null;
    this.heard_ns = 0;
    /** @type {Error | null} */
    this.error = null;
    /** @type {Map<string, Trend>} */
    this.trends = new Map();
    this.fetching = false;
    this.selected = 0;
    /** @type {RunRow[]} */
    this.rows = [];
    /** @type {import("../runs-model.js").Filter} */
    this.filter = "all";
    this.closed = false;
    this.verdict = new VerdictView();
    const query = el("input", { class: "filter", type: "search", placeholder: "Filter: name, user, script, host, file:line", "aria-label": "Filter the runs", autocomplete: "off" });
    query.value = app.router.place.view.get("q") ?? "";
    query.addEventListener("input", () => {
      app.router.note({ q: query.value || null });
      this.render();
    });
    this.query = query;
    this.filters = new Segmented("State", [{ value: "all", text: "All" }, { value: "live", text: "Live" }, { value: "found", text: "With findings" }, { value: "ended", text: "Ended" }, { value: "lost", text: "Lost" }], (filter) => {
      this.filter = filter;
      this.render();
    });
    const attach = el("button", { class: "button", type: "button", title: "Watch a job that is already running", click: () => openAttachDialog(app) }, "Attach…");
    this.body = el("tbody", {});
    this.problem = el("div", {});
    this.list = el("div", {}, el("div", { class: "runs-tools" }, query, this.filters.element, el("span", { class: "spacer" }), attach), this.problem, el("div", { class: "panel" }, this.table()), this.foot());
    this.empty = new FirstStart(app);
    this.element = el("div", {}, this.verdict.element, this.list, this.empty.element);
    this.list.hidden = true;
    this.empty.element.hidden = true;
    this.verdict.showLoading("");
    this.unfollow = app.connection.follow({
      wish: { type: "subscribe_runs" },
      onEvent: (event) => {
        if (event.kind !== "runs") return;
        this.runs = event.runs;
        this.heard_ns = app.clock.now_ns();
        this.error = null;
        this.render();
      },
      onError: (error) => {
        this.error = new Error(error.message);
        this.render();
      },
    });
    this.timer = setInterval(() => !document.hidden && this.render(), TICK_MS);
    app.shell.showPath(null);
    document.title = "Runs · vramscope";
  }

  close() {
    this.closed = true;
    clearInterval(this.timer);
    this.empty.close();
    this.unfollow();
  }

  table() {
    const columns = [["pointer", "", 34], ["name", "Run", 150], ["state", "State", 76], ["says", "What it says", null], ["spark", "Trend", 146], ["number", "Used at peak, GiB", 166], ["number of", "Of", 58], ["number", "Left", 56], ["number full-in", "Full in", 106], ["device", "Device", 112], ["number ranks-column", "Ranks", 54], ["number", "Step", 68], ["number duration", "Duration", 92]];
    return el("table", { class: "runs-table", "aria-label": "Runs" },
      el("thead", {}, el("tr", {}, ...columns.map(([name, text, width]) => {
        const head = el("th", { scope: "col", class: name }, text);
        if (width !== null) head.style.width = `${width}px`;
        return head;
      }))), this.body);
  }

  foot() {
    const keys = (/** @type {string[]} */ names, /** @type {string} */ text) => el("span", {}, ...names.map((name) => el("kbd", {}, name)), text);
    return el("div", { class: "runs-foot" }, keys(["j", "k"], "move"), keys(["Enter"], "open"), keys(["/"], "filter"), el("span", {}, "Live first, then by severity, then by time left"));
  }

  render() {
    if (this.closed) return;
    const { app, runs } = this;
    const cut = app.link.state !== "open";
    app.shell.showPill(cut ? pillOf({ run: null, link: app.link, now_ns: 0, monotonic_ms: performance.now() }) : null);
    fillWhenChanged(this.problem, this.error?.message ?? "", () => (this.error ? [failedPart("The list of runs", this.error, () => location.reload())] : []));
    if (!runs) {
      if (cut && app.link.attempt > 0) this.verdict.showLoading("This page has not reached its server yet.");
      return;
    }
    const nothing = runs.length === 0;
    this.empty.show(nothing);
    this.list.hidden = nothing;
    this.verdict.element.hidden = nothing;
    if (nothing) return;
    // While the page is cut off nothing ages: it is the page that hears nothing.
    const now_ns = cut ? this.heard_ns : app.clock.now_ns();
    const all = sortRows(runs.map((run) => runRow(run, this.trends.get(run.id)?.highest ?? null, now_ns)));
    this.verdict.show(cut
      ? { severity: "quiet", key: "cut", sentence: "This page is cut off from its server; the jobs do not notice.", second: "The list below is the last that was received." }
      : verdictOverRuns(all));
    for (const [filter, text] of /** @type {const} */ ([["all", "All"], ["live", "Live"], ["found", "With findings"], ["ended", "Ended"], ["lost", "Lost"]])) this.filters.label(filter, `${text} ${all.filter((row) => passes(row, filter)).length}`);
    this.filters.choose(this.filter);
    this.rows = all.filter((row) => passes(row, this.filter) && matches(row, this.query.value.trim())).slice(0, MOST_ROWS);
    this.selected = Math.max(0, Math.min(this.rows.length - 1, this.selected));
    this.showRows(now_ns);
    void this.fetchTrends();
  }

  /** @param {number} now_ns */
  showRows(now_ns) {
    const keys = this.rows.map((row) => row.run.id).join();
    if (this.body.dataset.key !== keys) {
      this.body.dataset.key = keys;
      fill(this.body, ...this.rows.map((row) => this.emptyRow(row.run)));
    }
    if (this.rows.length === 0) fill(this.body, el("tr", {}, el("td", {}), el("td", { colspan: 12, class: "empty-line" }, "No run matches this filter.")));
    this.rows.forEach((row, i) => this.showRow(/** @type {HTMLTableRowElement} */ (this.body.rows[i]), row, i === this.selected, now_ns));
  }

  /** @param {Run} run */
  emptyRow(run) {
    const open = () => this.app.router.go(pathOf("overview", run.id));
    const link = el("a", { href: pathOf("overview", run.id), title: run.name }, run.name);
    return el("tr", { click: (/** @type {MouseEvent} */ event) => event.target instanceof Element && !event.target.closest("a") && open() },
      el("td", { class: "pointer" }), el("td", { class: "name" }, el("div", {}, link), el("small", {})), el("td", { class: "state" }, el("span", { class: "state-mark" }, el("span", { class: "dot" }), el("span", {}))),
      el("td", { class: "says" }, el("div", {}, el("span", { class: "glyph" }), el("span", {}))), el("td", { class: "spark" }), el("td", { class: "number" }, el("span", { class: "usage" }, el("i", {})), el("span", {})), el("td", { class: "number ink2 of" }), el("td", { class: "number" }), el("td", { class: "number full-in" }), el("td", { class: "device ink2" }), el("td", { class: "number ranks-column" }), el("td", { class: "number" }), el("td", { class: "number duration" }));
  }

  /**
   * @param {HTMLTableRowElement} line
   * @param {RunRow} row
   * @param {boolean} isSelected
   * @param {number} now_ns
   */
  showRow(line, row, isSelected, now_ns) {
    const { run, says } = row;
    const cell = (/** @type {number} */ i) => line.cells[i];
    setAttribute(line, "aria-selected", isSelected ? "true" : null);
    setText(cell(0), isSelected ? "▸" : "");
    setText(/** @type {Element} */ (cell(1).querySelector("small")), [day(run.started_ns, now_ns), run.user].filter(Boolean).join(" · "));
    setAttribute(/** @type {Element} */ (cell(2).firstElementChild), "data-shape", SHAPES[row.state]);
    setText(/** @type {Element} */ (cell(2).firstElementChild?.lastElementChild), row.state);
    const [glyph, text] = [.../** @type {Element} */ (cell(3).firstElementChild).children];
    setText(glyph, says.glyph);
    setAttribute(glyph, "class", `glyph ${says.severity === "crit" ? "crit" : says.severity === "warn" ? "warn" : "ink3"}`);
    fillWhenChanged(/** @type {HTMLElement} */ (text), says.text, () => richText(says.text));
    setAttribute(text, "title", says.text);
    setAttribute(text, "class", says.severity === "crit" || says.severity === "warn" ? "" : "ink2");
    const trend = this.trends.get(run.id);
    fillWhenChanged(cell(4), trend ? `${trend.fetched_ms}` : "none", () => [spark(trend?.values ?? [], row.limit, run.world_size > 1 ? `rank ${run.fullest_rank}` : "the run")]);
    const bar = /** @type {HTMLElement} */ (cell(5).querySelector("i"));
    bar.style.width = known(row.used) && known(row.limit) ? `${Math.min(100, (row.used / row.limit) * 100)}%` : "0";
    setText(/** @type {Element} */ (cell(5).lastElementChild), gib(row.used));
    setAttribute(cell(5), "title", exactBytes(row.used));
    setText(cell(6), gib(row.limit));
    const critical = headroomSeverity(row.free, row.limit) === "crit";
    fillWhenChanged(cell(7), `${gib(row.free)}${critical}`, () => [el("b", { class: critical ? "crit" : null }, gib(row.free))]);
    const isSoon = says.severity === "crit";
    fillWhenChanged(cell(8), `${row.full_in}${isSoon}`, () => [row.full_in ? el("b", { class: isSoon ? "crit" : null }, row.full_in) : el("span", { class: "ink3" }, "–")]);
    setText(cell(9), devicesText(run));
    setText(cell(10), count(run.world_size));
    setText(cell(11), count(run.step));
    setText(cell(12), age(((run.ended_ns ?? (run.state === "live" ? now_ns : (run.last_seen_ns ?? run.started_ns))) - run.started_ns) / 1e9));
  }

  /** One trend at a time, the oldest first: a list of hundreds must not flood the server. */
  async fetchTrends() {
    if (this.fetching) return;
    const due = (/** @type {RunRow} */ row) => {
      const trend = this.trends.get(row.run.id);
      return !trend || (row.run.state === "live" && performance.now() - trend.fetched_ms > TREND_EVERY_MS);
    };
    this.fetching = true;
    try {
      const next = () => this.rows.find((row) => !this.trends.has(row.run.id)) ?? this.rows.find(due);
      for (let row = next(); row && !this.closed && this.app.link.state === "open"; row = next()) {
        const payload = await api.series(row.run.id, { fields: [DEVICE_USED, RESERVED], rank: row.run.fullest_rank, points: TREND_POINTS });
        const device = payload.columns[DEVICE_USED]?.max ?? [];
        const values = device.some(known) ? device : (payload.columns[RESERVED]?.max ?? []);
        const highest = values.filter(known);
        this.trends.set(row.run.id, { values, highest: highest.length ? Math.max(...highest) : null, fetched_ms: performance.now() });
      }
    } catch (error) {
      // The list itself is whole without its trends; the next tick tries again.
      console.warn("trend of a run", error);
    } finally {
      this.fetching = false;
    }
  }

  /** @param {number} by */
  move(by) {
    this.selected = Math.max(0, Math.min(this.rows.length - 1, this.selected + by));
    this.render();
    this.body.rows[this.selected]?.scrollIntoView({ block: "nearest" });
  }

  openSelected() {
    const row = this.rows[this.selected];
    if (row) this.app.router.go(pathOf("overview", row.run.id));
  }
}
