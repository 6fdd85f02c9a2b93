// Overview: am I all right? Figures, the chart that ends in its own anatomy, what could be done.

import { el, fillWhenChanged } from "../dom.js";
import { drawableForecast, drawnFinding, hasGrown, isSmallOnAxis } from "../findings/growth-evidence.js";
import { findingHappenings } from "../findings/happenings.js";
import { presentFindings } from "../findings.js";
import { age, count, known, sizeText } from "../format.js";
import { takenBack } from "../commands/effects.js";
import { happenings, phaseHappenings, turnings } from "../marks.js";
import { queryFromView, shownRange, viewFromQuery } from "../memory-view.js";
import { numberAt, stretchesOf } from "../numbering.js";
import { stepFacts } from "../run-summary.js";
import { emptyTable, rowsBetween, takeRows, xAtTime } from "../series.js";
import { deviceVerdict } from "../device-verdict.js";
import { coveringSnapshot } from "../snapshots/covering.js";
import { showHappenings } from "./events.js";
import { FindingsPanel } from "./findings.js";
import { MemoryPanel } from "./memory-panel.js";
import { sceneOf } from "./overview-scene.js";
import { panel } from "./parts.js";
import { ReceiptPanel } from "./receipt.js";
import { Stats } from "./stats.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../memory-view.js").MemoryView} MemoryView */

const NOTHING = emptyTable([]);
/** A range that is not wider shows one step. */
const ONE_STEP = 1.5;
/**
 * A device that the rank does not have, or that is shown anyway, is not chosen.
 * @param {MemoryView} view
 * @param {import("../messages.js").Run} run
 * @returns {MemoryView}
 */
function withDevice(view, run) {
  const devices = run.ranks?.find((one) => one.rank === view.rank)?.devices.slice(1) ?? [];
  return devices.some((one) => one.index === view.device) ? view : { ...view, device: null };
}

/** As in the style sheets: one column. */
const NARROW = "(max-width: 1099px)";

export class Overview {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    const { session } = page;
    const run = /** @type {import("../messages.js").Run} */ (session.run);
    this.ranks = run.world_size;
    const view = withDevice(viewFromQuery(page.app.router.place.view, run.world_size), run);
    session.selectRank(view.rank, view.device);
    this.stats = new Stats();
    this.receipt = new ReceiptPanel(session);
    this.findings = new FindingsPanel(page, { onEvidence: (finding) => this.showEvidence(finding), onShown: (finding) => page.app.router.note({ finding: finding?.id ?? null }) });
    /** Findings whose growth was too little to be seen from 0 on: the axis stays as it opened. @type {Set<string>} */
    this.small = new Set();
    this.pulses = location.hash === "#evidence";
    this.eventsBody = el("div", { class: "body" });
    this.todoBody = el("div", { class: "body" });
    this.todo = panel("What you could do", [], this.todoBody);
    this.memory = new MemoryPanel(view, { sceneOf: (shown) => this.scene(shown), defaults: () => this.defaults, onView: (changed) => this.viewChanged(changed) });
    const all = el("a", { href: page.pathOf("commands") }, "All");
    this.rail = el("aside", { class: "rail", "aria-label": "Receipts, findings, actions, events" }, this.receipt.element, this.findings.element, this.todo, panel("Events", [el("div", { class: "controls" }, all)], this.eventsBody));
    /** Where the card of a critical finding goes on a narrow page. */
    this.first = el("div", { class: "first-card" });
    this.narrow = matchMedia(NARROW);
    this.element = el("div", {}, this.first, this.stats.element, el("div", { class: "run-grid" }, this.memory.element, this.rail));
  }

  close() {
    this.memory.close();
  }

  themeChanged() {
    this.memory.themeChanged();
  }

  get shownRank() {
    return this.memory.view.rank;
  }

  /** @param {MemoryView} view */
  viewChanged(view) {
    this.page.session.selectRank(view.rank, view.device);
    this.page.app.router.note(queryFromView(view, this.ranks));
    this.page.changed();
  }

  /** The finding whose evidence is in the chart: the one that the card shows, if it has any. */
  get drawnFinding() {
    const { session } = this.page;
    const run = session.run;
    // Growth is found on the device on which the steps end.
    if (!run || known(this.memory?.view.device)) return null;
    const rank = this.memory?.view.rank ?? null;
    const present = presentFindings(session.store.state.findings, run).filter((finding) => rank === null || finding.ranks.length === 0 || finding.ranks.includes(rank));
    const chosen = present.find((finding) => finding.id === this.findings.chosen);
    return drawnFinding(chosen ? [chosen, ...present] : present);
  }

  /** What the chart shows where the reader chose nothing: a finding wants its growth and its forecast seen. */
  get defaults() {
    const run = this.page.session.run;
    const finding = this.drawnFinding;
    const isLive = run?.state === "live";
    if (finding && isSmallOnAxis(finding, this.page.summary?.limit.bytes ?? null)) this.small.add(finding.id);
    const forecast = isLive && finding !== null && drawableForecast(finding.evidence.forecast) !== null;
    const grew = finding !== null && hasGrown(finding);
    /** @type {import("../memory-view.js").Defaults} */
    const defaults = { y: finding && this.small.has(finding.id) ? "moving" : "full", window: forecast ? "forecast" : grew || !isLive ? "run" : "10m" };
    return defaults;
  }

  /** @param {import("../findings/messages.js").Finding} finding */
  showEvidence(finding) {
    const [rank] = finding.ranks;
    const wanted = finding.ranks.length === 1 && this.ranks > 1 ? rank : this.memory.view.rank;
    if (this.memory.view.rank !== wanted || this.memory.view.device !== null) this.memory.setView({ ...this.memory.view, rank: wanted, device: null });
    this.memory.showEvidence();
  }

  /** On a narrow page a critical finding stands between the sentence and the chart, and the figures go. */
  placeCard() {
    const isFirst = this.narrow.matches && this.findings.shown?.severity === "critical" && this.findings.shown.resolved_ns === null;
    this.stats.element.hidden = isFirst;
    const home = isFirst ? this.first : this.rail;
    if (this.findings.element.parentElement === home) return;
    if (isFirst) home.append(this.findings.element);
    else this.receipt.element.after(this.findings.element);
  }

  /**
   * @param {MemoryView} view
   * @returns {ReturnType<import("./memory-panel.js").SceneSource>}
   */
  scene(view) {
    const scene = sceneOf(this.page, view, this.drawnFinding);
    return scene && { ...scene, rangeLeadsTo: (marked) => this.leadsTo(marked) };
  }

  /**
   * Where a marked range leads: a link to it, a recording that covers it, or a recording to come.
   * @param {MemoryView} view
   */
  leadsTo(view) {
    const { page } = this;
    const query = new URLSearchParams(Object.entries(queryFromView(view, this.ranks)).flatMap(([name, value]) => (value === null ? [] : [[name, value]])));
    const recorded = this.recordedIn(view);
    const mayRecord = page.actions.reasonOf("history_start", page.session.run, page.app.link, page.app.scopes) === null;
    return { link: `${location.origin}${page.pathOf("overview")}?${query}`, snapshot: recorded && { address: this.recordedPath(recorded), compare: recorded.last > recorded.step ? `${this.recordedPath(recorded)}&compare=ends` : null, isWhole: recorded.isWhole, what: recorded.last > recorded.step ? `steps ${count(recorded.step)} to ${count(recorded.last)} were` : `step ${count(recorded.step)} was` }, record: mayRecord ? () => page.openCommand("history_start") : null };
  }

  /** @param {import("../snapshots/covering.js").Covering} recorded */
  recordedPath({ id, range_us: [from, to] }) {
    return `${this.page.snapshotPath(id)}?from=${from}&to=${to}`;
  }

  /** Called by the page when anything changed, at most ten times a second. */
  update() {
    const { session, summary } = this.page;
    const run = session.run;
    if (!run || !summary) return;
    const data = session.rankData;
    const facts = data ? stepFacts(data, this.shownSteps(data), data.high(data.steps.recent.x[0] ?? -Infinity)) : null;
    this.facts = facts;
    const drawn = this.drawnFinding;
    this.stats.show(summary, facts, run, drawn && hasGrown(drawn) && drawn.severity !== "info" ? (drawn.severity === "critical" ? "crit" : "warn") : null);
    if (data?.loaded) this.memory.showSteps(!data.steps.isEmpty);
    this.memory.changed();
    this.receipt.update();
    this.findings.update();
    this.placeCard();
    if (this.pulses && this.memory.model?.evidence) {
      this.pulses = false;
      this.memory.timeline.evidence.pulse();
    }
    this.showTodo(facts);
    const more = [...turnings(run), ...findingHappenings(session.store.state.findings), ...phaseHappenings(session.phases.of(this.shownRank ?? session.firstRank))];
    showHappenings(this.eventsBody, happenings(session.store.state.events, session.store.state.commands, run.world_size, more), 8, this.stepAt);
  }

  /** The step that was running at a time, as far as that is known; of all ranks together there is none. */
  get stepAt() {
    const steps = this.page.session.rankData?.steps.whole();
    const run = this.page.session.run;
    if (!steps?.x.length || !run) return null;
    const stretches = stretchesOf(steps);
    return (/** @type {number} */ time_ns) => {
      const t = (time_ns - run.started_ns) / 1e9;
      return t < steps.t[0] ? 0 : numberAt(stretches, Math.floor(xAtTime(steps, t)));
    };
  }

  /** @param {import("../data/rank-data.js").RankData} data */
  shownSteps(data) {
    const view = this.memory.seen;
    const steps = data.steps.whole();
    const range = shownRange(view, view.xKind === "step" ? steps : data.samples.whole());
    const [x0, x1] = view.xKind === "step" ? range : [xAtTime(steps, range[0]), xAtTime(steps, range[1])];
    const [from, to] = rowsBetween(steps, x0, x1);
    return takeRows(steps, Array.from({ length: to - from }, (_, i) => from + i));
  }

  /**
   * The one remedy that is known here: the cache, with what it does not do.
   * @param {import("../run-summary.js").StepFacts | null} facts
   */
  showTodo(facts) {
    const cached = facts?.cached ?? null;
    const run = this.page.session.run;
    const isOffered = this.findings.shown?.remedies.some((remedy) => remedy.command?.startsWith("empty_cache"));
    this.todo.hidden = isOffered || !known(cached) || cached < 2 ** 20 || run?.state !== "live" || this.page.summary?.rank?.state !== "live";
    if (this.todo.hidden || !facts || !known(cached)) return;
    const back = takenBack({ reserved: facts.reserved, returned: cached, activePeak: facts.activePeak });
    const text = `Returns ${sizeText(cached)} between steps${known(back) ? (back > 0 ? `; the next step takes at least ${sizeText(back)} back` : "") : ""}. Useful only if another process needs it now.`;
    const reason = this.page.actions.free.disabled ? this.page.actions.free.title : null;
    fillWhenChanged(this.todoBody, `${text}/${reason}`, () => [
      el("ul", { class: "todo" }, el("li", {}, el("span", { class: "ink3" }, "1"), el("span", { class: "what" }, "Free the cache"), el("button", { class: "button", type: "button", disabled: reason !== null, title: reason, click: () => this.page.openCommand("empty_cache") }, "Dry run…"), el("p", {}, text))),
    ]);
  }

  /**
   * When the one step that is shown was highest.
   * @param {string} number
   */
  oneStep(number) {
    const { reading } = this.memory;
    if (!reading || !known(reading.peak.allocated)) return null;
    const parts = reading.peakParts?.isOwn ? reading.peakParts : null;
    const where = parts?.rows.some((part) => part.isHighest) ? `in ${parts.highest}` : "";
    return `Step ${number} is highest ${where ? `${where}: ` : "at "}${sizeText(reading.peak.allocated)} allocated, ${reading.peak.reservedAtMost ? "at most " : ""}${sizeText(reading.peak.reserved)} reserved.`;
  }

  /** Words for the first and second line while the reader looks at the past; null while following. */
  /** A recording of what is looked at. */
  get recorded() {
    return this.recordedIn(this.memory.view);
  }

  /** @param {MemoryView} view */
  recordedIn(view) {
    const { session } = this.page;
    if (!view.range || !session.snapshots || !session.run || (view.xKind === "step" && view.rank === null)) return null;
    const stretches = stretchesOf(session.rankData?.steps.whole() ?? NOTHING);
    return coveringSnapshot(session.snapshots, { rank: view.rank, range: view.range, xKind: view.xKind, started_ns: session.run.started_ns, numberAt: (x) => numberAt(stretches, Math.round(x)) });
  }

  /** Of a device beside the one that is watched in full, unless something is wrong that is more urgent. */
  get verdict() {
    const { summary, verdict } = this.page;
    const { device } = this.memory.view;
    if (device === null || !summary?.rank || !verdict || verdict.severity !== "ok") return null;
    return deviceVerdict(summary.rank, device, summary);
  }

  get lookingBack() {
    const { view } = this.memory;
    if (!view.range) return null;
    const { behind } = this.memory;
    // A forecast may be in the picture: there are no steps to look at.
    const [from, to] = [view.range[0], Math.min(view.range[1], Math.max(view.range[0] + 1, this.memory.source?.x.at(-1) ?? Infinity))];
    const unit = view.xKind === "step" && view.rank !== null;
    const stretches = unit ? stretchesOf(this.page.session.rankData?.steps.whole() ?? NOTHING) : [];
    const number = (/** @type {number} */ x) => count(numberAt(stretches, Math.round(x)));
    const one = unit && to - from < ONE_STEP ? this.oneStep(number(to)) : null;
    const what = one ? "Looking at one step." : unit ? `Looking at steps ${number(from)} to ${number(to)}.` : `Looking at ${age(to - from)} of the run.`;
    return { what, sentence: one, link: this.page.session.run?.state === "live" ? `back to live${behind > 0 ? (unit ? `, ${count(behind)} ${behind === 1 ? "step" : "steps"} behind` : `, ${age(behind)} behind`) : ""}` : "back to the end" };
  }
}

