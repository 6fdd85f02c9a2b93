// One bar to the limit, and below it what was asked for, from where the free rest begins: its overhang
// is the reason.

import { hatchColour, readTokens, CROSSED } from "../charts/theme.js";
import { niceStep } from "../charts/ticks.js";
import { LAYERS } from "../composition.js";
import { el, fill } from "../dom.js";
import { exactBytes, inUnit, known, sizeText, tableUnit } from "../format.js";
import { askedText } from "../oom/where-it-went.js";

/** @typedef {import("../oom/where-it-went.js").Account} Account */
/** @typedef {import("../oom/where-it-went.js").Part} Part */

/** A part narrower than this has its name in the legend only. */
const LABEL_CHARACTER_PX = 7;
/** Room for what hangs over the limit. */
const AIR = 0.04;

export class WhereBar {
  constructor() {
    /** @type {Account | null} */
    this.account = null;
    this.element = el("div", { class: "where", role: "group" });
    this.resizes = new ResizeObserver(() => this.draw());
    this.resizes.observe(this.element);
  }

  close() {
    this.resizes.disconnect();
  }

  /** @param {Account} account */
  show(account) {
    this.account = account;
    this.element.setAttribute("aria-label", `${account.parts.map((part) => `${part.name} ${sizeText(part.bytes)}`).join(", ")}; asked for: ${askedText(account)}`);
    this.draw();
  }

  draw() {
    const { account } = this;
    if (!account || this.element.clientWidth === 0) return;
    const tokens = readTokens();
    const unit = tableUnit(account.limit_bytes);
    const from = askedFrom(account);
    const asked = account.asked_bytes ?? 0;
    const end = Math.max(account.limit_bytes, from + asked) * (1 + AIR);
    const track_px = this.element.clientWidth - 28 - 86;
    const share = (/** @type {number} */ bytes) => `${(bytes / end) * 100}%`;
    const bar = account.parts.map((part) => {
      const text = inUnit(part.bytes, unit);
      const px = (part.bytes / end) * track_px;
      const element = el("div", { class: "where-part", "data-part": part.id, title: `${part.name}: ${text} ${unit.name}, ${exactBytes(part.bytes)}` });
      element.style.width = share(part.bytes);
      if (part.id !== "left") paint(element, part, tokens);
      if (px > Math.max(part.name.length, text.length) * LABEL_CHARACTER_PX + 6) element.append(el("span", {}, part.name, el("b", {}, text)));
      else if (px > text.length * LABEL_CHARACTER_PX + 4) element.append(el("span", {}, el("b", {}, text)));
      return element;
    });
    const request = el("div", { class: "where-asked" });
    Object.assign(request.style, { left: share(from), width: `max(3px, ${share(asked)})` });
    const note = el("div", { class: "where-note" }, askedText(account));
    // Beside the box, on the side that has room.
    if (from / end > 0.5) note.style.right = `calc(${100 - (from / end) * 100}% + 6px)`;
    else note.style.left = `calc(${((from + asked) / end) * 100}% + 6px)`;
    const limit = el("div", { class: "where-limit" });
    limit.style.left = share(account.limit_bytes);
    const step = niceStep(account.limit_bytes / unit.bytes / 6) * unit.bytes;
    const ticks = Array.from({ length: Math.floor((0.93 * account.limit_bytes) / step) + 1 }, (_, i) => i * step);
    const tick = (/** @type {number} */ bytes, /** @type {string} */ text) => {
      const mark = el("span", {}, text);
      mark.style.left = share(bytes);
      return mark;
    };
    const digits = (/** @type {number} */ bytes) => (Math.round((bytes / unit.bytes) * 100) / 100).toLocaleString("en-US");
    fill(this.element,
      el("div", { class: "where-row" }, el("span", { class: "where-name" }, "At the failure"), el("div", { class: "where-track" }, ...bar)),
      el("div", { class: "where-row" }, el("span", { class: "where-name" }, "Asked for"), el("div", { class: "where-track" }, known(account.asked_bytes) ? request : null, note)),
      el("div", { class: "where-row axis" }, el("span", {}), el("div", { class: "where-track" }, ...ticks.map((bytes) => tick(bytes, digits(bytes))), tick(account.limit_bytes, `${inUnit(account.limit_bytes, unit)} ${unit.name}`), limit)),
      el("ul", { class: "legend" }, ...account.parts.map((part) => {
        const mark = el("i", { class: "swatch", "data-part": part.id });
        if (part.id !== "left") paint(mark, part, tokens);
        return el("li", {}, mark, `${part.name} ${inUnit(part.bytes, unit)}`);
      })));
  }
}

/**
 * Where the free rest begins.
 * @param {Account} account
 */
function askedFrom(account) {
  return account.parts.filter((part) => part.id !== "left").reduce((sum, part) => sum + part.bytes, 0);
}

/**
 * @param {HTMLElement} element
 * @param {Part} part
 * @param {import("../charts/theme.js").Tokens} tokens
 */
function paint(element, part, tokens) {
  if (part.id === "left") return;
  const layer = LAYERS.find((one) => one.id === part.id);
  const colour = tokens.category[part.id];
  if (!layer?.pattern) {
    element.style.background = colour;
    return;
  }
  const ground = CROSSED.has(part.id) ? colour : tokens.panel;
  const angle = layer.pattern === "\\" ? 45 : 135;
  element.style.background = `repeating-linear-gradient(${angle}deg, ${hatchColour(tokens, part.id)} 0 2px, ${ground} 2px 6px)`;
  element.dataset.hatched = "yes";
}
