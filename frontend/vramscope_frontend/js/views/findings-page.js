// Findings: what is wrong, how sure, what now? Open ones by urgency, then muted ones, then past ones.

import { el, fill, fillWhenChanged, setAttribute } from "../dom.js";
import { findingGlyph, findingTime, findingTitle, mutedFindings, pastFindings, presentFindings } from "../findings.js";
import { clock, clockWithUtc } from "../format.js";
import { severityGlyph } from "../glyphs.js";
import { cardsOf } from "./card-host.js";
import { FindingCard } from "./finding-card.js";
import { panel } from "./parts.js";
import { richText } from "./rich-text.js";

/** @typedef {import("../findings/messages.js").Finding} Finding */
/** @typedef {import("./run-page.js").RunPage} RunPage */

const MOST_TURNS = 60;
const WORDS = /** @type {Record<string, string>} */ ({ opened: "found", suspected: "suspected again", confirmed: "confirmed", severity: "is now", reopened: "is back", resolved: "over", ended: "held to the end", muted: "muted", unmuted: "no longer muted" });

export class FindingsPage {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.host = cardsOf(page, null);
    /** @type {Map<string, FindingCard>} */
    this.cards = new Map();
    /** @type {string | null} */
    this.selected = page.app.router.place.view.get("finding");
    this.isFirst = this.selected !== null;
    this.open = el("div", { class: "finding-list" });
    this.muted = el("div", { class: "finding-list" });
    this.past = el("div", { class: "finding-list" });
    this.mutedPart = el("section", { "aria-label": "Muted" }, el("h2", { class: "part" }, "Muted"), this.muted);
    this.pastPart = el("section", { "aria-label": "Past" }, el("h2", { class: "part" }, "Past"), this.past);
    this.history = el("div", { class: "body" });
    /** Those that `j` and `k` go through. @type {string[]} */
    this.order = [];
    this.element = el("div", { class: "run-grid findings-page" },
      el("div", { class: "findings-main" }, el("section", { "aria-label": "Open" }, this.open), this.mutedPart, this.pastPart),
      el("aside", { class: "rail", "aria-label": "History" }, panel("History", [el("span", { class: "context" }, "newest first")], this.history)));
  }

  close() {}

  update() {
    const { session } = this.page;
    const run = session.run;
    if (!run) return;
    const { findings } = session.store.state;
    const present = presentFindings(findings, run);
    this.fillList(this.open, present, () => el("p", { class: "panel body empty-line" }, session.findingsError ? `The findings could not be read: ${session.findingsError.message}` : run.state === "live" ? "Nothing is wrong that is looked for. What is found appears here by itself." : "Nothing was wrong when the run ended."));
    const muted = mutedFindings(findings);
    this.mutedPart.hidden = muted.length === 0;
    this.fillList(this.muted, muted);
    const past = pastFindings(findings);
    this.pastPart.hidden = past.length === 0;
    this.fillPast(past);
    this.showHistory(findings);
    const kept = new Set(findings.map((finding) => finding.id));
    for (const id of this.cards.keys()) if (!kept.has(id)) this.cards.delete(id);
    this.order = [...present, ...muted].map((finding) => finding.id);
    this.mark();
    if (this.isFirst && findings.length) {
      this.isFirst = false;
      if (this.selected) this.select(this.selected);
    }
  }

  /**
   * @param {HTMLElement} list
   * @param {Finding[]} findings
   * @param {() => Node} [empty]
   */
  fillList(list, findings, empty) {
    const ids = findings.map((finding) => finding.id).join();
    if (list.dataset.key !== ids || (findings.length === 0 && empty)) {
      const changed = list.dataset.key !== ids || list.childElementCount === 0;
      list.dataset.key = ids;
      if (changed) fill(list, ...(findings.length ? findings.map((finding) => el("section", { class: "panel findings", tabindex: -1, "data-finding": finding.id, "aria-label": findingTitle(finding) }, this.cardOf(finding).element)) : [empty?.()]));
    }
    for (const finding of findings) this.cardOf(finding).show(finding, this.host.seen());
  }

  /** @param {Finding} finding */
  cardOf(finding) {
    const card = this.cards.get(finding.id) ?? new FindingCard(this.host.does, "h2");
    this.cards.set(finding.id, card);
    return card;
  }

  /**
   * One line each; the card unfolds.
   * @param {Finding[]} past
   */
  fillPast(past) {
    fillWhenChanged(this.past, past.map((finding) => `${finding.id}/${finding.resolved_ns}`).join(), () => past.map((finding) => {
      const unfolded = el("div", {});
      const details = el("details", { class: "panel findings", "data-finding": finding.id },
        el("summary", {}, severityGlyph(findingGlyph(finding), 14), el("span", { class: "ink3" }, findingTime(finding, 0)), el("span", {}, ...richText(finding.summary))), unfolded);
      details.open = finding.id === this.selected;
      const show = () => {
        if (!details.open) return;
        fill(unfolded, this.cardOf(finding).element);
        this.cardOf(finding).show(finding, this.host.seen());
      };
      details.addEventListener("toggle", show);
      show();
      return details;
    }));
  }

  /** @param {Finding[]} findings */
  showHistory(findings) {
    const turns = findings.flatMap((finding) => turnsOf(finding).map((turn) => ({ ...turn, finding }))).sort((a, b) => b.time_ns - a.time_ns).slice(0, MOST_TURNS);
    fillWhenChanged(this.history, JSON.stringify(turns.map((turn) => [turn.time_ns, turn.what, turn.finding.id])), () =>
      turns.length === 0
        ? [el("p", { class: "empty-line" }, "What is found, confirmed, muted and over is listed here.")]
        : [el("ul", { class: "turns" }, ...turns.map((turn) => el("li", {}, el("span", { class: "ink3", title: clockWithUtc(turn.time_ns) }, clock(turn.time_ns)), el("a", { href: `${this.page.pathOf("findings")}?finding=${turn.finding.id}`, title: turn.summary }, findingTitle(turn.finding)), el("span", { class: "ink2" }, turn.what === "severity" ? `${WORDS.severity} ${turn.severity}` : (WORDS[turn.what] ?? turn.what)))))]);
  }

  /** @param {string} id */
  select(id) {
    this.selected = id;
    this.page.app.router.note({ finding: id });
    this.mark();
    const element = /** @type {HTMLElement | null} */ (this.element.querySelector(`[data-finding="${CSS.escape(id)}"]`));
    element?.scrollIntoView({ block: "nearest" });
    element?.focus({ preventScroll: true });
  }

  mark() {
    for (const one of this.element.querySelectorAll("[data-finding]")) setAttribute(one, "data-selected", one.getAttribute("data-finding") === this.selected);
  }

  /** @param {string} key */
  onKey(key) {
    const { order } = this;
    if (order.length === 0) return false;
    const at = order.indexOf(this.selected ?? "");
    if (key === "j" || key === "ArrowDown") this.select(order[Math.min(order.length - 1, at + 1)]);
    else if (key === "k" || key === "ArrowUp") this.select(order[Math.max(0, at - 1)]);
    else if (key === "Enter" && at >= 0) {
      const finding = this.page.session.store.state.findings.find((one) => one.id === order[at]);
      if (finding) this.page.app.router.go(this.host.does.oomPath(finding) ?? this.host.does.evidencePath(finding));
    } else return false;
    return true;
  }
}

/**
 * What became of a finding; a server that keeps no history tells at least when it was found and over.
 * @param {Finding} finding
 * @returns {import("../findings/messages.js").Turn[]}
 */
function turnsOf(finding) {
  if (finding.history?.length) return finding.history;
  const { severity, summary } = finding;
  return [
    { time_ns: finding.opened_ns, what: "opened", severity, summary },
    ...(finding.confirmed_ns ? [{ time_ns: finding.confirmed_ns, what: "confirmed", severity, summary }] : []),
    ...(finding.resolved_ns ? [{ time_ns: finding.resolved_ns, what: "resolved", severity, summary }] : []),
  ];
}
