// Findings as cards: what, since when, the words behind it, and what would help.

import { el, fillWhenChanged } from "../dom.js";
import { findingGlyph, findingTime, findingTitle, openFindings, pastFindings } from "../findings.js";
import { plural } from "../format.js";
import { severityGlyph } from "../glyphs.js";
import { panel } from "./parts.js";

/** @typedef {import("../messages.js").Finding} Finding */

const PAST_SHOWN = 3;
/** The times tick, but not faster than a reader reads. */
const TICK_NS = 10e9;

export class FindingsPanel {
  /** @param {string} [checked] what is looked for: said while nothing is found */
  constructor(checked = "Looked for: an agent that shows less than was asked for (rate, losses, errors).") {
    this.checked = checked;
    this.context = el("span", { class: "context" });
    this.body = el("div", { class: "body findings" });
    this.element = panel("Findings", [this.context], this.body);
  }

  /**
   * @param {Finding[]} findings
   * @param {{now_ns: number, many: boolean}} seen `many`: the run has several ranks
   */
  update(findings, { now_ns, many }) {
    const open = openFindings(findings);
    const past = pastFindings(findings);
    fillWhenChanged(this.context, `${open.length}/${past.length}`, () => [open.length ? plural(open.length, "finding") : "none now", past.length ? ` · ${past.length} past` : ""]);
    const key = JSON.stringify([open, past.slice(0, PAST_SHOWN), open.length ? Math.floor(now_ns / TICK_NS) : 0, many]);
    fillWhenChanged(this.body, key, () => [
      ...open.map((finding) => card(finding, now_ns, many)),
      open.length === 0 && el("p", { class: "empty-line" }, `Nothing is wrong that is looked for. ${this.checked}`),
      ...past.slice(0, PAST_SHOWN).map((finding) => pastLine(finding, now_ns, many)),
    ]);
  }
}

/**
 * @param {Finding} finding
 * @param {number} now_ns
 * @param {boolean} many
 */
function card(finding, now_ns, many) {
  return el("article", { class: "finding", "data-severity": finding.severity, "aria-label": findingTitle(finding) },
    el("h3", {}, severityGlyph(findingGlyph(finding), 14), " ", findingTitle(finding), many ? ranksText(finding) : null),
    el("p", {}, finding.summary),
    el("p", { class: "ink3" }, findingTime(finding, now_ns)),
    ...finding.remedies.map((remedy) => el("p", { class: "ink2" }, `${sentenceCase(remedy.action)}: ${remedy.why}.`)));
}

/**
 * @param {Finding} finding
 * @param {number} now_ns
 * @param {boolean} many
 */
function pastLine(finding, now_ns, many) {
  return el("p", { class: "past-finding ink3" }, `${findingTime(finding, now_ns)}${many ? ranksText(finding) : ""}: ${finding.summary}`);
}

/** @param {Finding} finding */
function ranksText(finding) {
  if (finding.ranks.length === 0) return "";
  return finding.ranks.length === 1 ? ` · rank ${finding.ranks[0]}` : ` · ${finding.ranks.length} ranks`;
}

/** @param {string} text */
function sentenceCase(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
