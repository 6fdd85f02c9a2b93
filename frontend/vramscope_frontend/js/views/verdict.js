// The sentence on top of a page. A screen reader hears it when it changes in kind, not with each
// number.

import { byId, el, fillWhenChanged, setAttribute, setText } from "../dom.js";
import { severityGlyph } from "../glyphs.js";
import { richText } from "./rich-text.js";

/** @typedef {import("../verdict.js").Verdict} Verdict */

export class VerdictView {
  constructor() {
    this.glyph = el("span", { class: "glyph" });
    this.sentence = el("h1", {});
    this.second = el("span", {});
    this.more = el("span", {});
    this.element = el("section", { class: "verdict", "aria-label": "Verdict" }, this.glyph, el("div", {}, this.sentence, el("p", { class: "second" }, this.second, " ", this.more)));
    this.key = "";
    this.severity = "";
  }

  /** Grey bars in the place of text; nothing moves. After two seconds it says what it waits for. */
  showLoading(/** @type {string} */ waitingFor, second = "") {
    const texts = [waitingFor || "Reading the run", second || "\u2003".repeat(24)];
    [this.sentence, this.second].forEach((element, i) => fillWhenChanged(element, texts[i], () => [texts[i]]));
    this.sentence.classList.toggle("bone", !waitingFor);
    this.second.classList.toggle("bone", !second);
    this.drawGlyph("quiet");
  }

  /** @param {Verdict} verdict */
  show(verdict) {
    this.sentence.classList.remove("bone");
    this.second.classList.remove("bone");
    // A number stays with its unit when the line breaks.
    const sentence = verdict.sentence.replace(/(\d) (GiB|MiB|KiB|bytes|s|min)\b/g, "$1\u00a0$2");
    fillWhenChanged(this.sentence, sentence, () => richText(sentence));
    fillWhenChanged(this.second, verdict.second, () => richText(verdict.second));
    setAttribute(this.second, "title", verdict.more || null);
    setAttribute(this.element, "data-severity", verdict.severity);
    this.drawGlyph(verdict.severity);
    if (verdict.key !== this.key) {
      this.key = verdict.key;
      setText(byId("announcer"), verdict.sentence);
    }
  }

  /** @param {import("../glyphs.js").Severity} severity */
  drawGlyph(severity) {
    if (this.severity === severity) return;
    this.severity = severity;
    this.glyph.replaceChildren(severityGlyph(severity));
  }
}
