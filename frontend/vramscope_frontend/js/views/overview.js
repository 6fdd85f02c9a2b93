// Overview: am I all right? Figures, the chart that ends in its own anatomy, what could be done.

import { el, fillWhenChanged } from "../dom.js";
import { DEVICE_PROCESS, RESERVED } from "../fields.js";
import { age, count, known, sizeText } from "../format.js";
import { takenBack } from "../commands/effects.js";
import { happenings, marksOf, phaseHappenings, turnings } from "../marks.js";
import { queryFromView, shownRange, viewFromQuery } from "../memory-view.js";
import { deviceText, devicesText } from "../limits.js";
import { numberAt, stretchesOf, xOfMoment } from "../numbering.js";
import { bandsOf } from "../phases.js";
import { turnsOf, turnText } from "../restarts.js";
import { silence_s } from "../run-state.js";
import { stepFacts } from "../run-summary.js";
import { emptyTable, lastKnown, rowsBetween, takeRows, xAtTime } from "../series.js";
import { coveringSnapshot } from "../snapshots/covering.js";
import { showHappenings } from "./events.js";
import { FindingsPanel } from "./findings.js";
import { MemoryPanel } from "./memory-panel.js";
import { panel } from "./parts.js";
import { ReceiptPanel } from "./receipt.js";
import { Stats } from "./stats.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../memory-view.js").MemoryView} MemoryView */

const NOTHING = emptyTable([]);
/** A range that is not wider shows one step. */
const ONE_STEP = 1.5;

export class Overview {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    const { session } = page;
    const run = /** @type {import("../messages.js").Run} */ (session.run);
    this.shape = { ended: run.state === "ended", ranks: run.world_size };
    const view = viewFromQuery(page.app.router.place.view, this.shape);
    session.selectRank(view.rank);
    this.stats = new Stats();
    this.receipt = new ReceiptPanel(session);
    this.findings = new FindingsPanel();
    this.eventsBody = el("div", { class: "body" });
    this.todoBody = el("div", { class: "body" });
    this.todo = panel("What you could do", [], this.todoBody);
    this.memory = new MemoryPanel(view, (shown) => this.scene(shown), (changed) => this.viewChanged(changed));
    const all = el("a", { href: page.pathOf("commands") }, "All");
    this.element = el("div", {}, this.stats.element, el("div", { class: "run-grid" }, this.memory.element, el("aside", { class: "rail", "aria-label": "Receipts, findings, actions, events" }, this.receipt.element, this.findings.element, this.todo, panel("Events", [el("div", { class: "controls" }, all)], this.eventsBody))));
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
    this.page.session.selectRank(view.rank);
    this.page.app.router.note(queryFromView(view, this.shape));
    this.page.changed();
  }

  /**
   * Everything that one picture is made of.
   * @param {MemoryView} view
   * @returns {ReturnType<import("./memory-panel.js").SceneSource>}
   */
  scene(view) {
    const { session, app } = this.page;
    const run = session.run;
    const summary = this.page.summary;
    if (!run || !summary) return null;
    const data = session.rankData;
    const seen = view.rank === null ? { ...view, xKind: /** @type {const} */ ("time") } : view;
    const rows = data ? data[seen.xKind === "step" ? "steps" : "samples"].whole() : matrixTimes(session.matrix);
    const pill = this.page.pill;
    // Of a rank that is gone nothing comes any more, however live the others are.
    const gone = summary.rank && summary.rank.state !== "live" && run.state === "live" ? summary.rank : null;
    const lost = pill.state === "lost" || gone?.state === "lost";
    const silent = lost || gone !== null || pill.state === "stale" || pill.state === "disconnected";
    const last = rows.x.at(-1) ?? 0;
    const silent_s = silence_s(gone ? { ...run, last_seen_ns: gone.last_seen_ns } : run, app.clock.now_ns()) ?? 0;
    const probe = shownRange(seen, rows);
    const quiet = silent ? Math.min((probe[1] - probe[0]) * 0.16, seen.xKind === "time" ? silent_s : silent_s * stepsPerSecond(rows)) : 0;
    const range = shownRange(seen, rows, last + quiet);
    const whole = data?.[seen.xKind === "step" ? "steps" : "samples"];
    const steps = data?.steps.whole() ?? NOTHING;
    const placeOfTime = (/** @type {number} */ t) => (seen.xKind === "time" ? t : xAtTime(steps, t));
    return {
      session,
      ranks: run.world_size,
      isGone: gone !== null,
      view: seen,
      steps: data ? data.steps.view(seen.xKind === "step" ? range[0] : -Infinity) : NOTHING,
      high: data && seen.xKind === "step" ? data.high(range[0]) : NOTHING,
      samples: data ? data.samples.view(seen.xKind === "time" ? range[0] : -Infinity) : NOTHING,
      range,
      limit_bytes: summary.limit.bytes,
      limitLabel: summary.limit.label,
      limitDashed: summary.limit.dashed,
      origin_ns: run.started_ns,
      emulated: run.emulated,
      dimmed: silent,
      marks: marksOf(happenings(session.store.state.events, session.store.state.commands, run.world_size, turnings(run)).filter((one) => one.rank === null || view.rank === null || one.rank === view.rank), seen.xKind, run.started_ns, (t) => xAtTime(steps, t), (step, t) => xOfMoment(steps, step, t)),
      bands: bandsOf(session.phases.of(view.rank ?? session.firstRank), run.started_ns, placeOfTime, data?.samples.last ?? rows.t.at(-1) ?? 0),
      cuts: this.cuts(run, seen, steps),
      samplesLost: summary.samplesLost,
      isWhole: data?.isWhole ?? true,
      silentZones: silent && last < range[1] ? [{ x0: last, x1: range[1], quiet: true, text: lost ? `silent since ${seen.xKind === "step" ? `step ${count(numberAt(stretchesOf(steps), last))}` : `${age(silent_s)} ago`}` : "no data" }] : [],
      status: summary.rank?.status ?? null,
      pid: summary.rank?.pid ?? null,
      context_bytes: contextNow(data?.samples.whole() ?? NOTHING),
      context: summary.rank ? deviceText(summary.rank) : devicesText(run),
      summary: `Memory over ${seen.xKind === "step" ? "steps" : "time"}: ${whole?.isEmpty ? "no data yet" : `${this.page.verdict?.sentence ?? ""}`}`,
    };
  }

  /** Called by the page when anything changed, at most ten times a second. */
  update() {
    const { session, summary } = this.page;
    const run = session.run;
    if (!run || !summary) return;
    const data = session.rankData;
    const facts = data ? stepFacts(data, this.shownSteps(data), data.high(data.steps.recent.x[0] ?? -Infinity)) : null;
    this.facts = facts;
    this.stats.show(summary, facts, run);
    if (data?.loaded) this.memory.showSteps(!data.steps.isEmpty);
    this.memory.changed();
    this.receipt.update();
    this.findings.update(session.store.state.findings, { now_ns: this.page.app.clock.now_ns(), many: run.world_size > 1 });
    this.showTodo(facts);
    const more = [...turnings(run), ...phaseHappenings(session.phases.of(this.shownRank ?? session.firstRank))];
    showHappenings(this.eventsBody, happenings(session.store.state.events, session.store.state.commands, run.world_size, more), 8);
  }

  /**
   * Where another process took over: along the axis of steps the first place that is not the old one's.
   * @param {import("../messages.js").Run} run
   * @param {MemoryView} view
   * @param {import("../series.js").Table} steps
   * @returns {import("../charts/timeline.js").Cut[]}
   */
  cuts(run, view, steps) {
    const turns = turnsOf(run).filter((turn) => turn.kind === "restart" && (view.rank === null || turn.changes.some((one) => one.rank === view.rank)));
    const stretches = stretchesOf(steps);
    return turns.flatMap((turn) => {
      const life = turn.changes.find((one) => one.rank === view.rank)?.after.life;
      const x = view.xKind === "time" ? (turn.time_ns - run.started_ns) / 1e9 : stretches.find((one) => one.life === life)?.x;
      return x === undefined ? [] : [{ x: view.xKind === "step" ? x - 0.5 : x, text: turnText(turn, run.world_size) }];
    });
  }

  /** @param {import("../data/rank-data.js").RankData} data */
  shownSteps(data) {
    const { view } = this.memory;
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
    this.todo.hidden = !known(cached) || cached < 2 ** 20 || run?.state !== "live" || this.page.summary?.rank?.state !== "live";
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
    const { view } = this.memory;
    const { session } = this.page;
    if (!view.range || !session.snapshots || !session.run || (view.xKind === "step" && view.rank === null)) return null;
    const stretches = stretchesOf(session.rankData?.steps.whole() ?? NOTHING);
    return coveringSnapshot(session.snapshots, { rank: view.rank, range: view.range, xKind: view.xKind, started_ns: session.run.started_ns, numberAt: (x) => numberAt(stretches, Math.round(x)) });
  }

  get lookingBack() {
    const { view } = this.memory;
    if (!view.range) return null;
    const { behind } = this.memory;
    const [from, to] = view.range;
    const unit = view.xKind === "step" && view.rank !== null;
    const stretches = unit ? stretchesOf(this.page.session.rankData?.steps.whole() ?? NOTHING) : [];
    const number = (/** @type {number} */ x) => count(numberAt(stretches, Math.round(x)));
    const one = unit && to - from < ONE_STEP ? this.oneStep(number(to)) : null;
    const what = one ? "Looking at one step." : unit ? `Looking at steps ${number(from)} to ${number(to)}.` : `Looking at ${age(to - from)} of the run.`;
    return { what, sentence: one, link: this.page.session.run?.state === "live" ? `back to live${behind > 0 ? (unit ? `, ${count(behind)} ${behind === 1 ? "step" : "steps"} behind` : `, ${age(behind)} behind`) : ""}` : "back to the end" };
  }
}

/**
 * What the driver counts to the process beyond what PyTorch holds, by the newest sample.
 * @param {import("../series.js").Table} samples
 */
function contextNow({ columns }) {
  const held = lastKnown(columns[DEVICE_PROCESS]);
  const reserved = lastKnown(columns[RESERVED]);
  return known(held) && known(reserved) ? Math.max(0, held - reserved) : null;
}

/** @param {import("../data/rank-matrix.js").RankMatrix | null} matrix */
function matrixTimes(matrix) {
  if (!matrix) return NOTHING;
  const { t } = matrix.picture(240);
  return { ...NOTHING, x: t, t };
}

/** @param {import("../series.js").Table} rows */
function stepsPerSecond(rows) {
  const end = rows.x.length - 1;
  const from = Math.max(0, end - 50);
  return end > from && rows.t[end] > rows.t[from] ? (rows.x[end] - rows.x[from]) / (rows.t[end] - rows.t[from]) : 1;
}
