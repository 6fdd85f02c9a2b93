// Frame of every page of a run: pill, tabs, sentence, actions; the pages themselves are swapped in.

import { Actions } from "../commands/actions.js";
import { commandEntry } from "../commands/catalogue.js";
import { CommandDialog } from "../commands/dialog.js";
import { receiptSentence } from "../commands/effects.js";
import { pauseOf } from "../commands/pause-state.js";
import { pauseVerdict } from "../commands/pause-verdict.js";
import { liveRanks, viewOnlyReason } from "../commands/rights.js";
import { runCommand } from "../commands/tracking.js";
import { ownCommands } from "../commands/user-commands.js";
import { RunSession } from "../data/run-session.js";
import { byId, el, fill, fillWhenChanged, setText } from "../dom.js";
import { accusedRanks, presentFindings } from "../findings.js";
import { count, known, MIB } from "../format.js";
import { pathOf } from "../router.js";
import { pillOf, silence_s } from "../run-state.js";
import { summarize } from "../run-summary.js";
import { verdictOf } from "../verdict.js";
import { About } from "./about.js";
import { Commands } from "./commands.js";
import { FindingsPage } from "./findings-page.js";
import { Overview } from "./overview.js";
import { MemoryMap } from "./map.js";
import { OomPage } from "./oom.js";
import { failedPart } from "./parts.js";
import { Ranks } from "./ranks.js";
import { Snapshot } from "./snapshot.js";
import { Snapshots } from "./snapshots.js";
import { VerdictView } from "./verdict.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../router.js").PageName} PageName */

/**
 * What the page of a run swaps in. A view with a `verdict` says its own sentence instead of the run's.
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {() => void} update
 * @property {() => void} close
 * @property {import("../verdict.js").Verdict | null} [verdict]
 * @property {string | null} [pillNote]  what the pill says besides, while the run is live
 * @property {(key: string) => boolean} [onKey]
 * @property {() => void} [themeChanged]
 */

const TICK_MS = 100;
/** Ages tick even when nothing arrives. */
const AGE_MS = 500;
const SAY_AFTER_MS = 2000;
/** Growth a step that is shown as 0.0, and what of a device would take half a million steps to fill it. */
const FLAT_BYTES = 0.05 * MIB;
const FLAT_SHARE = 2e-6;

export class RunPage {
  /**
   * @param {App} app
   * @param {string} id
   */
  constructor(app, id) {
    this.app = app;
    this.id = id;
    this.session = new RunSession(app.connection, app.clock, id);
    this.verdictView = new VerdictView();
    this.actions = new Actions((name) => this.openCommand(name), this.pathOf("commands"));
    this.tabLinks = el("div", { class: "tab-links" });
    this.problem = el("div", {});
    this.trouble = el("div", {});
    this.content = el("div", {});
    this.element = el("div", {}, this.verdictView.element, this.problem, this.trouble, this.content);
    /** @type {View | null} */
    this.view = null;
    /** @type {PageName} */
    this.pageName = "overview";
    /** @type {string | null} */
    this.snapshot = null;
    /** @type {string | null} */
    this.shown = null;
    /** @type {import("../run-summary.js").Summary | null} */
    this.summary = null;
    /** @type {import("../verdict.js").Verdict | null} */
    this.verdict = null;
    this.pill = pillOf({ run: null, link: app.link, now_ns: 0, monotonic_ms: 0 });
    this.opened_ms = performance.now();
    this.dirty = true;
    this.drawn_ms = 0;
    this.session.store.subscribe(() => this.changed());
    this.leaving = new AbortController();
    this.timer = setInterval(() => this.tick(), TICK_MS);
    void this.session.load();
  }

  close() {
    clearInterval(this.timer);
    this.leaving.abort();
    this.view?.close();
    this.actions.close();
    this.session.close();
    const tabs = byId("tabs");
    tabs.hidden = true;
    fill(tabs);
  }

  /**
   * @param {PageName} name
   * @param {string | null} [snapshot] of the page of one snapshot
   */
  open(name, snapshot = null) {
    this.pageName = name;
    this.snapshot = snapshot;
    this.changed();
    this.tick();
  }

  /** @param {PageName} name */
  pathOf(name) {
    return pathOf(name, this.id);
  }

  /** @param {string} id */
  oomPath(id) {
    return pathOf("oom", this.id, id);
  }

  /**
   * Something that a reader asked for did not happen.
   * @param {string} what
   * @param {Error} error
   */
  showTrouble(what, error) {
    fill(this.trouble, failedPart(what, error, () => this.trouble.replaceChildren()));
  }

  /** @param {string} id */
  snapshotPath(id) {
    return pathOf("snapshot", this.id, id);
  }

  changed() {
    this.dirty = true;
  }

  themeChanged() {
    this.view?.themeChanged?.();
  }

  tick() {
    if (document.hidden || (!this.dirty && performance.now() - this.drawn_ms < AGE_MS)) return;
    this.dirty = false;
    this.drawn_ms = performance.now();
    this.render();
  }

  render() {
    const { app, session } = this;
    const run = session.run;
    const error = session.store.state.error;
    if (run) this.showView();
    const shown = this.view instanceof Overview ? this.view.shownRank : run && run.world_size > 1 ? null : 0;
    this.summary = run ? summarize(run, shown, session.rankData, session.matrix, accusedRanks(presentFindings(session.store.state.findings, run))) : null;
    const viewOnly = run ? this.viewOnly(run) : null;
    this.pill = pillOf({ run, link: app.link, now_ns: app.clock.now_ns(), monotonic_ms: performance.now(), rate_hz: this.summary?.rate_hz ?? null, mayControl: viewOnly === null });
    const isPaused = pauseOf(session.store.state.commands, run, app.clock.now_ns()) !== null;
    const note = isPaused ? "paused" : this.view?.pillNote;
    if (note && (this.pill.state === "live" || (isPaused && this.pill.state === "stale"))) this.pill.text += ` · ${note}`;
    // A run that could not be read is not being read any more: the page says why instead.
    app.shell.showPill(!run && error && this.pill.state === "loading" ? null : this.pill);
    app.shell.showPath(run?.name ?? this.id);
    this.showTabs(run);
    this.actions.update(run, app.link, app.scopes);
    fillWhenChanged(this.problem, error ? error.message : "", () => (error ? [failedPart(run ? "The run could not be read again" : "The run could not be read", error, () => void session.load())] : []));
    if (!run || !this.summary || (session.rankData && !session.rankData.loaded && !session.rankData.error && session.rankData.samples.isEmpty)) {
      if (error) this.verdictView.showLoading("This run could not be read.", "The other runs are in the list.");
      else this.verdictView.showLoading(performance.now() - this.opened_ms > SAY_AFTER_MS ? "Waiting for the server to answer with the history of this run." : "");
      if (run) this.view?.update();
      return;
    }
    this.showVerdict(run, viewOnly);
    this.view?.update();
  }

  /**
   * @param {import("../messages.js").Run} run
   * @param {string | null} viewOnly
   */
  showVerdict(run, viewOnly) {
    const { summary, app } = this;
    if (!summary) return;
    const now_ns = app.clock.now_ns();
    const inFull = this.view instanceof Overview && this.view.shownRank !== null;
    this.verdict = verdictOf({ run, pill: this.pill, limit_bytes: summary.limit.bytes, peak: summary.peak, worst: inFull ? null : summary.worst, firstStep: summary.firstStep, now_ns, silent_s: silence_s(run, now_ns), viewOnly, samplesLost: summary.samplesLost, isNamed: inFull && this.view instanceof Overview && this.view.memory.isNamed, ...this.found(run) });
    const back = this.view instanceof Overview ? this.view.lookingBack : null;
    document.title = `${run.name} · vramscope`;
    const pause = this.pill.state === "disconnected" ? null : pauseOf(this.session.store.state.commands, run, now_ns);
    if (pause) this.verdict = pauseVerdict(pause, this.verdict, run.world_size, now_ns);
    const verdict = pause ? this.verdict : ((this.pill.state === "disconnected" ? null : this.view?.verdict) ?? this.verdict);
    this.verdictView.show(back ? { ...verdict, ...(back.sentence ? { key: "one-step", sentence: back.sentence } : {}), second: back.what } : verdict);
    const { more } = this.verdictView;
    if (this.pill.state === "disconnected") fillWhenChanged(more, "retry", () => [el("button", { class: "button link", type: "button", click: () => app.connection.retryNow() }, "Retry now")]);
    else if (pause) {
      const whyNot = this.actions.reasonOf("resume", run, app.link, app.scopes);
      fillWhenChanged(more, `resume/${whyNot}`, () => [el("button", { class: "button", type: "button", disabled: whyNot !== null, title: whyNot ?? "Training goes on at once, on all ranks", click: (/** @type {Event} */ event) => void this.resume(/** @type {HTMLButtonElement} */ (event.currentTarget)) }, "Resume")]);
    } else if (back && this.view instanceof Overview) {
      const overview = this.view;
      const { recorded } = overview;
      fillWhenChanged(more, `${back.link}/${recorded?.id}/${recorded?.range_us}`, () => [el("button", { class: "button link", type: "button", click: () => overview.memory.controls.followButton.click() }, back.link), " ", el("kbd", {}, "f"), recorded && " · ", recorded && el("a", { href: overview.recordedPath(recorded) }, `every allocation from step ${count(recorded.step)} on`)]);
    } else fillWhenChanged(more, "", () => []);
  }

  /**
   * It only undoes what was done from here: nothing is asked first.
   * @param {HTMLButtonElement} button
   */
  async resume(button) {
    button.disabled = true;
    setText(button, "Resuming…");
    try {
      const command = await runCommand(this.session, { name: "resume", ranks: "all", dry_run: false, params: {} }, () => undefined, this.leaving.signal);
      if (command.state !== "done") throw new Error(receiptSentence(command, this.session.run?.world_size ?? 1));
    } catch (error) {
      if (this.leaving.signal.aborted) return;
      this.showTrouble("Training was not resumed", /** @type {Error} */ (error));
      button.disabled = false;
      setText(button, "Resume");
    }
  }

  /**
   * What the server found, and what the figures say of growth.
   * @param {import("../messages.js").Run} run
   */
  found(run) {
    const { judged, store } = this.session;
    const growth = this.view instanceof Overview ? this.view.facts?.growth : null;
    // As long as growth may hide in the error nothing is said of it.
    const least = Math.max(FLAT_BYTES, FLAT_SHARE * (this.summary?.limit.bytes ?? 0));
    const isFlat = growth && Math.abs(growth.slope) + growth.error <= least;
    return { findings: presentFindings(store.state.findings, run), isJudged: judged !== null && (known(judged.judged_ns) || run.state !== "live"), flatSteps: isFlat ? growth.steps : null };
  }

  /** @param {import("../messages.js").Run} run */
  viewOnly(run) {
    if (run.state !== "live") return null;
    return viewOnlyReason(run, this.app.scopes);
  }

  showView() {
    const wanted = `${this.pageName}/${this.snapshot ?? ""}`;
    if (this.shown === wanted) return;
    this.view?.close();
    this.shown = wanted;
    const run = this.session.run;
    if (this.pageName !== "overview" && run) this.session.selectRank(run.world_size > 1 ? null : 0);
    const views = { overview: Overview, ranks: Ranks, findings: FindingsPage, oom: OomPage, map: MemoryMap, snapshots: Snapshots, snapshot: Snapshot, commands: Commands, about: About };
    const View = views[/** @type {keyof typeof views} */ (this.pageName)] ?? Overview;
    this.view = new View(this);
    fill(this.content, this.view.element);
  }

  /** @param {import("../messages.js").Run | null} run */
  showTabs(run) {
    const tabs = byId("tabs");
    tabs.hidden = false;
    // The buttons stay where they are while the tabs change: a press that has begun is not lost.
    if (!this.tabLinks.isConnected) fill(tabs, this.tabLinks, this.actions.element);
    const commands = this.session.store.state.commands.filter((command) => !command.dry_run).length;
    const many = (run?.world_size ?? 1) > 1;
    const snapshots = this.session.snapshots?.length ?? null;
    const isReport = this.pageName === "oom";
    const page = this.pageName === "snapshot" || isReport ? "snapshots" : this.pageName;
    const held = run ? presentFindings(this.session.store.state.findings, run) : [];
    const critical = held.some((finding) => finding.severity === "critical");
    // Of a run that died the report comes first.
    const died = run?.state === "ended" ? this.session.ooms.find((one) => one.is_fatal && !one.linked_to) : undefined;
    const isDied = isReport && this.snapshot === died?.id;
    fillWhenChanged(this.tabLinks, `${this.id}/${page}/${isDied}/${run?.world_size}/${commands}/${snapshots}/${this.session.judged ? held.length : ""}${critical}/${died?.id}`, () => {
      const tab = (/** @type {PageName} */ name, /** @type {string} */ text, /** @type {number | null} */ amount, isBad = false) =>
        el("a", { href: this.pathOf(name), "aria-current": page === name && !isDied ? "page" : null }, text, known(amount) ? el("span", { class: isBad ? "count crit" : "count" }, String(amount)) : null);
      return [died && el("a", { class: "died", href: this.oomPath(died.id), "aria-current": isDied ? "page" : null }, "Out of memory"), tab("overview", "Overview", null), many && tab("ranks", "Ranks", run?.world_size ?? null), tab("findings", "Findings", this.session.judged ? held.length : null, critical), tab("map", "Map", null), tab("snapshots", "Snapshots", snapshots), tab("commands", "Commands", commands), tab("about", "About", null)];
    });
  }

  /**
   * @param {string} name
   * @param {number} [wanted] the rank that it is meant for; else the one that is shown
   * @param {Record<string, any>} [params] values of its form at first
   */
  openCommand(name, wanted, params) {
    const { run } = this.session.store.state;
    if (!run || !this.summary || document.querySelector("dialog[open]")) return;
    const own = ownCommands(liveRanks(run), run.world_size).find(({ entry }) => entry.name === name);
    const entry = commandEntry(name) ?? own?.entry;
    if (!entry) return;
    const overview = this.view instanceof Overview ? this.view : null;
    const rank = wanted ?? (run.world_size === 1 ? 0 : overview ? overview.shownRank : this.view instanceof Ranks ? this.view.actOn : null);
    new CommandDialog(entry, { session: this.session, rank, params, ranks: own?.ranks, activePeak: () => overview?.facts?.activePeak ?? null, limit_bytes: this.summary.limit.bytes, snapshotPath: (snapshot) => this.snapshotPath(snapshot) }).open();
  }
}
