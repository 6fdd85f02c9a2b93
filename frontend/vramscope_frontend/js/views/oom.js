// Out of memory: why did it die, what would have helped?

import { api } from "../api.js";
import { WayChart } from "../charts/way-chart.js";
import { commandEntry } from "../commands/catalogue.js";
import { copyFrom, el, fill, fillWhenChanged } from "../dom.js";
import { ALLOCATED } from "../fields.js";
import { capital, placeText, remedyText } from "../findings/card-words.js";
import { clock, count, inUnit, known, percent, plural, sizeText, tableUnit } from "../format.js";
import { byLine, isAsked, oomMarkdown, oomVerdict, outcomeText } from "../oom/oom-words.js";
import { wayThere } from "../oom/way-there.js";
import { whereItWent } from "../oom/where-it-went.js";
import { WhereBar } from "./oom-bar.js";
import { dataTable, failedPart, panel } from "./parts.js";
import { richText } from "./rich-text.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../oom/messages.js").OomAnswer} OomAnswer */
/** @typedef {import("../oom/messages.js").OomReport} OomReport */

const MOST_ROWS = 12;

export class OomPage {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.id = page.snapshot ?? "";
    /** @type {OomAnswer | null} */
    this.answer = null;
    /** @type {import("../verdict.js").Verdict | null} */
    this.verdict = { severity: "quiet", key: "oom-loading", sentence: "Reading the report.", second: "" };
    this.closing = new AbortController();
    this.bar = new WhereBar();
    this.problem = el("div", {});
    this.way = new WayChart((error) => fill(this.problem, failedPart("The chart library", error, () => location.reload())));
    this.whereContext = el("span", { class: "context" });
    this.wayContext = el("span", { class: "context" });
    this.wayTable = el("details", { class: "way-table" });
    this.wherePanel = panel("Where it went", [this.whereContext], this.bar.element);
    this.wayPanel = panel("The way there", [this.wayContext, el("div", { class: "controls" }, el("a", { href: page.pathOf("overview") }, "Open in timeline"))], this.way.element, this.wayTable);
    this.helped = el("div", { class: "body" });
    this.held = el("div", { class: "body" });
    this.heldContext = el("span", { class: "context" });
    this.words = el("div", { class: "body" });
    this.copyWords = el("button", { class: "button link", type: "button", click: () => void copyFrom(this.copyWords, this.answer?.report.message ?? "") }, "Copy");
    this.wordsPanel = panel("PyTorch's own words", [el("div", { class: "controls" }, this.copyWords)], this.words);
    this.more = el("div", { class: "body" });
    this.threadsPanel = panel("Threads and state at that moment", [], this.more);
    this.threadsPanel.classList.add("threads");
    this.others = el("div", { class: "body" });
    this.othersPanel = panel("Other ranks", [], this.others);
    const copy = el("button", { class: "button", type: "button", click: () => void copyFrom(copy, this.markdown()) }, "Copy as Markdown");
    const download = document.documentElement.dataset.frame === undefined ? el("a", { class: "button", href: `/api/v1/ooms/${encodeURIComponent(this.id)}`, download: `oom-${this.id}.json`, target: "_self" }, "Download report") : null;
    this.tools = el("div", { class: "runs-tools oom-tools" }, el("a", { href: page.pathOf("snapshots") }, "‹ Snapshots"), el("span", { class: "spacer" }), copy, download);
    this.element = el("div", {}, this.tools, this.problem, el("div", { class: "oom-grid" },
      el("div", { class: "rail one" }, this.wherePanel, this.wayPanel, this.threadsPanel),
      el("aside", { class: "rail", "aria-label": "What would have helped, who held it" }, panel("What would have helped", [], this.helped), panel("Who held it", [this.heldContext], this.held), this.othersPanel, this.wordsPanel)));
    this.othersPanel.hidden = true;
    void this.load();
  }

  close() {
    this.closing.abort();
    this.way.close();
    this.bar.close();
  }

  themeChanged() {
    this.way.draw();
    this.bar.draw();
  }

  async load() {
    try {
      const answer = await api.oom(this.id, this.closing.signal);
      this.show(answer);
    } catch (error) {
      if (this.closing.signal.aborted) return;
      this.verdict = { severity: "quiet", key: "oom-failed", sentence: "This report could not be read.", second: "The other pages of the run are not affected." };
      fill(this.problem, failedPart("The report", /** @type {Error} */ (error), () => void this.load()));
      this.page.changed();
    }
  }

  /** @param {OomAnswer} answer */
  show(answer) {
    this.answer = answer;
    const { report } = answer;
    const world_size = this.page.session.run?.world_size ?? 1;
    this.problem.replaceChildren();
    this.verdict = oomVerdict(answer, world_size);
    const account = whereItWent(report);
    this.wherePanel.hidden = account === null;
    if (account) {
      fill(/** @type {Element} */ (this.wherePanel.querySelector("h2")), `Where the ${sizeText(account.limit_bytes, 2)} went`);
      fill(this.whereContext, [...new Set([account.isOwnLimit ? `limit of the process · device ${sizeText(report.device_total_bytes)}` : (report.device_name ?? ""), report.emulated && "emulated"])].filter(Boolean).join(" · "));
      this.bar.show(account);
    }
    const way = wayThere(report);
    this.wayPanel.hidden = way === null;
    if (way) {
      fill(this.wayContext, way.bySteps ? `peak of each step, ${plural(way.x.length, "step")}` : "the last minute");
      this.way.show(way, account?.limit_bytes ?? null);
      fill(this.wayTable, el("summary", {}, "Table"), el("div", { class: "rank-list" }, wayTable(way)));
    }
    this.showHelped(answer);
    this.showHeld(report);
    this.wordsPanel.hidden = !report.message;
    fill(this.words, el("pre", { class: "own-words" }, report.message));
    this.showOthers(answer, world_size);
    fill(this.more, ...stateParts(answer));
    this.page.changed();
  }

  update() {
    // A report does not change; what came of it may, and then the list says so.
    const row = this.page.session.ooms.find((one) => one.id === this.id);
    if (row && this.answer && (row.recovered_step !== this.answer.recovered_step || row.is_fatal !== this.answer.is_fatal)) {
      this.answer.recovered_step = row.recovered_step;
      this.answer.is_fatal = row.is_fatal;
      void this.load();
    }
  }

  markdown() {
    const run = this.page.session.run;
    return this.answer && run ? oomMarkdown(this.answer, { run: run.name, world_size: run.world_size, address: location.origin + this.page.oomPath(this.id) }) : "";
  }

  /** @param {OomAnswer} answer */
  showHelped(answer) {
    const { finding } = answer;
    const tried = Array.isArray(finding?.evidence.tried) ? finding.evidence.tried.filter((/** @type {any} */ one) => one && one.is_worth_it === false) : [];
    const remedies = finding?.remedies ?? [];
    if (remedies.length + tried.length === 0) {
      fill(this.helped, el("p", { class: "empty-line" }, isAsked(answer) ? "This rank did not run out of memory." : "Nothing that this report proves to help."));
      return;
    }
    fill(this.helped, el("ol", { class: "remedies" },
      ...remedies.map((remedy, i) => el("li", {}, el("span", { class: "ink3" }, String(i + 1)), el("span", { class: "what" }, ...richText(capital(remedy.action))), el("span", { class: "buttons" }, this.remedyButtons(remedy)), el("p", {}, ...richText(remedyText(remedy))))),
      ...tried.map((/** @type {any} */ one) => el("li", { class: "ink2" }, el("span", { class: "ink3" }, "–"), el("code", {}, String(one.settings ?? "")), el("span", {}), el("p", {}, `Tried in replay: ${String(one.outcome ?? "does not help")}`)))));
  }

  /** @param {import("../findings/messages.js").Remedy} remedy */
  remedyButtons(remedy) {
    if (remedy.fix) {
      const copy = el("button", { class: "button", type: "button", title: remedy.fix, click: () => void copyFrom(copy, remedy.fix ?? "") }, "Copy");
      return copy;
    }
    const entry = remedy.command ? commandEntry(remedy.command) : undefined;
    const reason = entry ? this.page.actions.reasonOf(entry.name, this.page.session.run, this.page.app.link, this.page.app.scopes) : null;
    return entry && reason === null ? el("button", { class: "button", type: "button", click: () => this.page.openCommand(entry.name, this.answer?.rank) }, entry.dryRun ? "Dry run…" : "Run…") : null;
  }

  /** @param {OomReport} report */
  showHeld(report) {
    const stacks = byLine(report.by_stack ?? []).slice(0, MOST_ROWS);
    const tensors = (report.largest ?? []).slice(0, MOST_ROWS);
    const allocated = report.counters?.[ALLOCATED];
    if (stacks.length) {
      const unit = tableUnit(allocated ?? stacks[0].bytes);
      fill(this.heldContext, "by the line that allocated it");
      fill(this.held, dataTable(["Allocated at", ">Blocks", `>${unit.name}`, ">Share"], stacks.map((row) => [el("span", { title: row.file }, el("code", {}, placeText(row) || "no Python stack"), row.function ? ` ${row.function}` : ""), count(row.count), inUnit(row.bytes, unit), known(allocated) && allocated > 0 ? percent(row.bytes / allocated) : "–"]), "Live memory by line"));
      return;
    }
    if (tensors.length) {
      const unit = tableUnit(tensors[0].bytes);
      fill(this.heldContext, "the largest live tensors");
      fill(this.held, dataTable(["Tensor", `>${unit.name}`, "What it is, held by"], tensors.map((row) => [el("code", {}, row.tensor), inUnit(row.bytes, unit), [row.name || row.category?.replaceAll("_", " "), row.held_by?.length ? row.held_by.join(" › ") : ""].filter(Boolean).join(" · ") || "not known"]), "The largest live tensors"), el("p", { class: "ink3" }, "Which line allocated what is in a report only while a history is being recorded."));
      return;
    }
    fill(this.heldContext);
    fill(this.held, el("p", { class: "empty-line" }, "Not known: no history was being recorded, and no tensor could be looked at."));
  }

  /**
   * @param {OomAnswer} answer
   * @param {number} world_size
   */
  showOthers(answer, world_size) {
    const { siblings = [] } = answer;
    this.othersPanel.hidden = world_size <= 1 || siblings.length === 0;
    fillWhenChanged(this.others, siblings.map((one) => one.id).join(), () => [
      el("p", { class: "ink2" }, "How the other ranks stood at that moment:"),
      el("p", { class: "siblings" }, ...siblings.flatMap((one) => [el("a", { href: this.page.oomPath(one.id) }, `rank ${one.rank}`), " "])),
    ]);
  }
}

/**
 * What the chart draws, newest first.
 * @param {import("../oom/way-there.js").Way} way
 */
function wayTable(way) {
  const unit = tableUnit(way.highest);
  const flushes = new Map(way.retries.x.map((x, i) => [x, way.retries.y[i]]));
  const rows = way.x.map((x, i) => [way.bySteps ? count(x) : `${count(Math.round(x))} s`, inUnit(way.allocated[i], unit), inUnit(way.reserved[i], unit), count(flushes.get(x) ?? 0)]);
  return dataTable([way.bySteps ? ">Step" : ">Before", `>Allocated, ${unit.name}`, `>Reserved, ${unit.name}`, ">Flushes"], rows.reverse(), "The way there, newest first");
}

/**
 * What else was known, folded.
 * @param {OomAnswer} answer
 */
function stateParts(answer) {
  const { report } = answer;
  const facts = [
    ["When", `${clock(answer.time_ns)}${known(answer.step) ? `, step ${count(answer.step)}` : ""}${answer.part ? `, in the ${answer.part}` : ""}${answer.phase ? ` (${answer.phase})` : ""}`],
    ["What came of it", outcomeText(answer)],
    ["Asked for", [known(report.request_bytes) && sizeText(report.request_bytes), known(report.segment_bytes) && `${sizeText(report.segment_bytes)} of the driver`].filter(Boolean).join("; ") || "not known"],
    ["Free on the device", sizeText(report.device_free_bytes)],
    ["Settings", report.settings === null || report.settings === undefined ? "not known" : report.settings || "none: PyTorch's defaults"],
    ["Waits for Python's collector", known(report.garbage_bytes) ? (report.garbage_bytes > 0 ? sizeText(report.garbage_bytes) : "nothing") : "not looked for"],
    ...((answer.skipped ?? 0) > 0 ? [["Before this one", `${plural(answer.skipped ?? 0, "more time", "more times")} out of memory, without a report of its own`]] : []),
    ...(report.complete === false ? [["Complete", "no: the process was gone before all of it was written"]] : []),
    ...(report.notes?.length ? [["Missing", report.notes.join("; ")]] : []),
  ];
  const pools = report.free_blocks ?? [];
  return [
    el("dl", { class: "facts" }, ...facts.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)])),
    pools.length > 0 && el("details", {}, el("summary", {}, `Free memory inside PyTorch's segments: ${plural(pools.length, "pool")}`), dataTable(["Pool", ">Stream", ">Free", ">Pieces", ">Largest"], pools.map((one) => [one.pool, String(one.stream), sizeText(one.bytes), count(one.count), sizeText(one.largest_bytes)]), "Free memory by pool")),
    ...(report.threads ?? []).map((thread) => el("details", thread.raised ? { open: true } : {}, el("summary", {}, `${thread.name}${thread.raised ? ": asked for it" : thread.is_own ? " (of vramscope)" : ""}`), el("pre", { class: "stack" }, thread.frames.map((frame) => `${frame.file}:${frame.line}  ${frame.function ?? ""}`).join("\n") || "no Python frames"))),
  ];
}
