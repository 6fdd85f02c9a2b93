// The card of one finding: what, how much, where, held by what, why we are sure, what would help.

import { commandEntry } from "../commands/catalogue.js";
import { copyFrom, el, refill } from "../dom.js";
import { capital, factsText, holdersOf, placesOf, remedyText, sizeLine, sourceOf, whereText } from "../findings/card-words.js";
import { findingMarkdown } from "../findings/markdown.js";
import { hasGrown } from "../findings/growth-evidence.js";
import { findingGlyph, findingTime, findingTitle, isPast } from "../findings.js";
import { clock, known } from "../format.js";
import { severityGlyph } from "../glyphs.js";
import { richText } from "./rich-text.js";

/** @typedef {import("../findings/messages.js").Finding} Finding */
/** @typedef {import("../findings/messages.js").Remedy} Remedy */

/**
 * What a card can do, and what it has to know of the run for that.
 * @typedef {object} CardSeen
 * @property {string} run name
 * @property {number} world_size
 * @property {boolean} emulated
 * @property {number} now_ns
 * @property {number | null} as_of_ns when the last data came, if that is too long ago
 * @property {string} said by the page itself, so that the card need not say it again
 * @property {string | null} muteReason why muting is off; null: it is on
 * @property {(command: string) => string | null} reasonOf why a command is off
 */
/**
 * @typedef {object} CardDoes
 * @property {((finding: Finding) => void) | null} evidence null where the address leads to it
 * @property {(finding: Finding) => string} evidencePath
 * @property {(finding: Finding) => string} path of the card itself
 * @property {(command: string, finding: Finding) => void} run
 * @property {(finding: Finding) => void} mute
 * @property {(finding: Finding) => void} unmute
 * @property {(finding: Finding) => string | null} oomPath of the report behind it
 */

const MOST_CULPRITS = 3;

export class FindingCard {
  /**
   * @param {CardDoes} does
   * @param {"h3" | "h2"} [level]
   */
  constructor(does, level = "h3") {
    this.does = does;
    this.level = level;
    /** @type {Finding | null} */
    this.finding = null;
    /** @type {CardSeen | null} */
    this.seen = null;
    this.key = "";
    this.element = el("div", { class: "finding-holder" });
  }

  /**
   * @param {Finding} finding
   * @param {CardSeen} seen
   */
  show(finding, seen) {
    this.finding = finding;
    this.seen = seen;
    const key = JSON.stringify([finding, Math.floor(seen.now_ns / 10e9), seen.as_of_ns, seen.said, seen.muteReason, seen.world_size, finding.remedies.map((remedy) => (remedy.command ? seen.reasonOf(remedy.command) : ""))]);
    if (key === this.key) return;
    this.key = key;
    refill(this.element, this.article(finding, seen));
  }

  clear() {
    this.finding = null;
    this.key = "";
    this.element.replaceChildren();
  }

  /**
   * @param {Finding} finding
   * @param {CardSeen} seen
   */
  article(finding, seen) {
    const where = whereText(finding, seen.world_size);
    const stale = known(seen.as_of_ns);
    const state = finding.muted ? "muted" : isPast(finding) ? "past" : stale ? "stale" : "open";
    const title = findingTitle(finding);
    return el("article", { class: "finding", "data-key": finding.id, "data-severity": finding.severity, "data-state": state, "aria-label": title },
      el(this.level, {}, severityGlyph(findingGlyph(finding), 14), " ", ...richText(title)),
      seen.said.includes(finding.summary) ? null : el("p", { class: "summary" }, ...richText(finding.summary)),
      !finding.detail || seen.said.includes(finding.detail) ? null : el("p", { class: "ink2 detail" }, ...richText(finding.detail)),
      line("ink2", [where, sizeLine(finding)].filter(Boolean).join(" · ")),
      line("ink3", `${capital(findingTime(finding, seen.now_ns))}${stale ? ` · as of ${clock(seen.as_of_ns)}` : ""}${finding.muted ? ` · muted ${mutedText(finding)}` : ""}`),
      ...this.culprits(finding),
      ...this.why(finding),
      this.remedies(finding, seen),
      this.foot(finding, seen));
  }

  /** @param {Finding} finding */
  culprits(finding) {
    const source = sourceOf(finding);
    const places = placesOf(finding, MOST_CULPRITS);
    return [
      source && el("ol", { class: "source", "aria-label": `Lines of ${source.file}` }, ...source.lines.map((text, i) => el("li", { class: source.first_line + i === source.line ? "guilty" : null }, el("span", { class: "line-number" }, String(source.first_line + i)), el("code", {}, text)))),
      ...places.slice(source ? 1 : 0).map((place) => el("p", { class: "place", title: place.path }, el("code", {}, place.text), place.within ? " in " : null, place.within ? el("code", {}, place.within) : null)),
      ...holdersOf(finding, MOST_CULPRITS).map(({ chain, tensors }) => el("div", { class: "held-by" },
        chain && el("span", { class: "label" }, "Held by"), chain && el("code", {}, chain),
        tensors && el("p", { class: "kept" }, el("span", { class: "ink2" }, "Tensors "), el("code", {}, tensors)))),
    ];
  }

  /** @param {Finding} finding */
  why(finding) {
    const facts = factsText(finding);
    const link = !hasGrown(finding) ? null : this.does.evidence
      ? el("button", { class: "button link evidence-link", type: "button", click: () => this.finding && this.does.evidence?.(this.finding) }, "Evidence")
      : el("a", { href: this.does.evidencePath(finding) }, "Evidence");
    const oom = this.does.oomPath(finding);
    const report = oom ? el("a", { href: oom }, "Report") : null;
    if (!facts && !link && !report) return [];
    return [el("div", { class: "why" }, el("span", { class: "label" }, facts ? "Why we are sure" : link ? "In the chart" : "At that moment"), el("p", {}, ...richText(facts), facts ? " " : "", link, link && report ? " · " : "", report))];
  }

  /**
   * @param {Finding} finding
   * @param {CardSeen} seen
   */
  remedies(finding, seen) {
    if (finding.remedies.length === 0) return null;
    return el("ol", { class: "remedies", "aria-label": "What would help" }, ...finding.remedies.map((remedy, i) => el("li", {},
      el("span", { class: "ink3" }, String(i + 1)),
      el("span", { class: "what" }, ...richText(capital(remedy.action))),
      el("span", { class: "buttons" }, this.actButton(remedy, i, seen, finding), this.copyButton(remedy, i)),
      el("p", {}, ...richText(remedyText(remedy))))));
  }

  /**
   * @param {Remedy} remedy
   * @param {number} index
   * @param {CardSeen} seen
   * @param {Finding} finding
   */
  actButton(remedy, index, seen, finding) {
    const entry = remedy.command ? commandEntry(remedy.command) : undefined;
    if (!entry || finding.resolved_ns !== null) return null;
    const reason = seen.reasonOf(entry.name);
    return el("button", { class: "button", type: "button", disabled: reason !== null, title: reason, "aria-label": `${entry.title}, ${entry.dryRun ? "dry run" : "what it costs first"}`, click: () => {
      const command = this.finding?.remedies[index]?.command;
      if (command && this.finding) this.does.run(command, this.finding);
    } }, entry.dryRun ? "Dry run…" : "Run…");
  }

  /**
   * @param {Remedy} remedy
   * @param {number} index
   */
  copyButton(remedy, index) {
    if (!remedy.fix) return null;
    return el("button", { class: "button", type: "button", title: remedy.fix, click: (/** @type {Event} */ event) => void copyFrom(/** @type {HTMLElement} */ (event.currentTarget), this.finding?.remedies[index]?.fix ?? "") }, "Copy fix");
  }

  /**
   * @param {Finding} finding
   * @param {CardSeen} seen
   */
  foot(finding, seen) {
    const holds = finding.resolved_ns === null;
    const mute = !holds ? null : finding.muted
      ? el("button", { class: "button quiet", type: "button", disabled: seen.muteReason !== null, title: seen.muteReason, click: () => this.finding && this.does.unmute(this.finding) }, "Unmute")
      : el("button", { class: "button quiet", type: "button", disabled: seen.muteReason !== null, title: seen.muteReason ?? "It stays on the page of findings, and says no more until then", click: () => this.finding && this.does.mute(this.finding) }, "Mute…");
    return el("p", { class: "foot" }, mute, el("button", { class: "button quiet", type: "button", click: (/** @type {Event} */ event) => void copyFrom(/** @type {HTMLElement} */ (event.currentTarget), this.markdown()) }, "Copy as Markdown"));
  }

  markdown() {
    const { finding, seen } = this;
    return finding && seen ? findingMarkdown(finding, { run: seen.run, world_size: seen.world_size, emulated: seen.emulated, now_ns: seen.now_ns, address: this.does.path(finding) }) : "";
  }
}

/**
 * @param {string} className
 * @param {string} text
 */
function line(className, text) {
  return text ? el("p", { class: className }, text) : null;
}

const UNTIL = { run: "for this run", line: "for this line in every run of this name", day: "for a day" };

/** @param {Finding} finding */
export function mutedText({ muted }) {
  if (!muted) return "";
  return `${UNTIL[muted.until] ?? muted.until}${muted.by ? ` by ${muted.by}` : ""}: ${muted.reason}`;
}
