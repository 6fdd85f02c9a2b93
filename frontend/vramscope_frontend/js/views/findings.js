// Findings on the rail: the most urgent one as a card, the others one click away.

import { el, fillWhenChanged, setText } from "../dom.js";
import { findingTime, lookedForText, mutedFindings, pastFindings, presentFindings } from "../findings.js";
import { age, known, plural } from "../format.js";
import { cardsOf } from "./card-host.js";
import { FindingCard } from "./finding-card.js";

/** @typedef {import("../findings/messages.js").Finding} Finding */
/** @typedef {import("./run-page.js").RunPage} RunPage */

const PAST_SHOWN = 3;

export class FindingsPanel {
  /**
   * @param {RunPage} page
   * @param {object} [options]
   * @param {((finding: Finding) => void) | null} [options.onEvidence] null where the chart is on another page
   * @param {(finding: Finding | null) => void} [options.onShown] which one the reader wants to see
   * @param {ReadonlySet<string> | null} [options.kinds] only those
   */
  constructor(page, { onEvidence = null, onShown = () => undefined, kinds = null } = {}) {
    this.page = page;
    this.kinds = kinds;
    this.host = cardsOf(page, onEvidence);
    this.onShown = onShown;
    this.card = new FindingCard(this.host.does);
    /** The one that was chosen; null: the most urgent. @type {string | null} */
    this.chosen = page.app.router.place.view.get("finding");
    /** @type {Finding[]} */
    this.present = [];
    this.title = el("h2", {}, "Findings");
    this.tag = el("span", { class: "severity-tag", hidden: true });
    this.next = el("button", { class: "button link", type: "button", title: "Next finding (j)", click: () => this.move(1) }, "Next");
    this.all = el("a", { href: page.pathOf("findings") }, "All");
    this.none = el("div", { class: "body" });
    this.element = el("section", { class: "panel findings", "aria-label": "Findings" }, el("header", {}, this.title, this.tag, el("div", { class: "controls" }, this.next, this.all)), this.none, this.card.element);
  }

  /** The finding that is shown. */
  get shown() {
    return this.present.find((finding) => finding.id === this.chosen) ?? this.present[0] ?? null;
  }

  update() {
    const { session } = this.page;
    const run = session.run;
    if (!run) return;
    const { kinds } = this;
    const findings = session.store.state.findings.filter((finding) => kinds === null || kinds.has(finding.kind));
    this.present = presentFindings(findings, run);
    const { shown } = this;
    this.none.hidden = shown !== null;
    this.card.element.hidden = shown === null;
    this.tag.hidden = shown === null;
    this.next.hidden = this.present.length < 2;
    setText(this.title, shown ? `Finding ${this.present.indexOf(shown) + 1} of ${this.present.length}` : "Findings");
    if (shown) {
      setText(this.tag, shown.stage === "suspected" ? "suspected" : shown.severity);
      this.tag.dataset.severity = shown.stage === "suspected" && shown.severity === "info" ? "info" : shown.severity;
      this.card.show(shown, this.host.seen());
      return;
    }
    this.card.clear();
    session.refreshFindings();
    const [past, muted] = [pastFindings(findings).length, mutedFindings(findings).length];
    const text = this.noneText();
    fillWhenChanged(this.none, JSON.stringify([past, muted, text]), () => [
      el("p", { class: "empty-line" }, text),
      ...(this.kinds ? pastFindings(findings).slice(0, PAST_SHOWN).map((finding) => el("p", { class: "past-finding ink3" }, `${findingTime(finding, 0)}: ${finding.summary}`)) : []),
      !this.kinds && past + muted > 0 && el("p", { class: "ink3" }, [past > 0 && plural(past, "past finding"), muted > 0 && `${muted} muted`].filter(Boolean).join(" · ")),
    ]);
  }

  /** What was looked for without anything being found. */
  noneText() {
    const { session, app } = this.page;
    const { judged, findingsError } = session;
    if (findingsError) return `The findings could not be read: ${findingsError.message}`;
    if (!judged) return "Reading what was found.";
    const looked = lookedForText(this.kinds ? [...this.kinds] : judged.kinds);
    if (session.run?.state !== "live") return looked ? `None when the run ended. Looked for: ${looked}.` : "None when the run ended.";
    if (!known(judged.judged_ns)) return "None open. Not looked at yet: that begins with the first steps.";
    return `None open. Checked ${age((app.clock.now_ns() - judged.judged_ns) / 1e9)} ago${looked ? `: ${looked}` : ""}.`;
  }

  /**
   * The next one, around.
   * @param {number} by
   */
  move(by) {
    const { present, shown } = this;
    if (present.length < 2 || !shown) return false;
    this.chosen = present[(present.indexOf(shown) + by + present.length) % present.length].id;
    this.onShown(this.shown);
    this.update();
    return true;
  }
}
