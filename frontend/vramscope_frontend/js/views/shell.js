// Top bar: where the reader is, how the run stands, search, theme, help.

import { byId, el, fill, fillWhenChanged, setAttribute, setText } from "../dom.js";
import { logo } from "../glyphs.js";
import { chooseTheme, currentTheme, onThemeChange } from "../settings.js";

/** @typedef {import("../run-state.js").Pill} Pill */

/** As in the style sheets: one column, and no room for long labels. */
const NARROW = "(max-width: 1099px)";

export class Shell {
  /** @param {{onSearch: (text: string) => void, onHelp: () => void, onRetry: () => void}} handlers */
  constructor(handlers) {
    this.crumbs = el("nav", { class: "crumbs", "aria-label": "Where you are" });
    this.dot = el("span", { class: "dot", "aria-hidden": "true" });
    this.pillText = el("span", {});
    this.retry = el("button", { type: "button", hidden: true, click: handlers.onRetry }, "Retry");
    this.pill = el("div", { class: "pill", hidden: true }, this.dot, this.pillText, this.retry);
    const search = el("input", { type: "search", placeholder: "Find a run or step", "aria-label": "Find a run or step", autocomplete: "off" });
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && search.value.trim()) {
        handlers.onSearch(search.value.trim());
        search.blur();
      }
      if (event.key === "Escape") search.blur();
    });
    this.search = search;
    const narrow = matchMedia(NARROW);
    const label = () => setAttribute(search, "placeholder", narrow.matches ? "Find" : "Find a run or step");
    narrow.addEventListener("change", label);
    label();
    this.theme = el("button", { class: "plain", type: "button", title: "Switch colours (t)", click: () => this.toggleTheme() }, "Light");
    this.help = el("button", { class: "plain", type: "button", title: "Keyboard shortcuts (?)", click: handlers.onHelp }, "Help ", el("kbd", {}, "?"));
    // Small inside another page; the same address in a tab of its own has room.
    const tab = window.top === window ? null : el("a", { class: "to-tab", href: location.href, target: "_blank", rel: "noopener" }, "Open in a tab");
    fill(byId("topbar"), el("a", { class: "brand", href: "/" }, logo(), "vramscope"), this.crumbs, this.pill, el("div", { class: "spacer" }), el("div", { class: "search" }, search, el("kbd", { "aria-hidden": "true" }, "/")), tab, this.theme, this.help);
    onThemeChange(() => this.showTheme());
    this.showTheme();
  }

  toggleTheme() {
    chooseTheme(currentTheme() === "dark" ? "light" : "dark");
  }

  showTheme() {
    setText(this.theme, currentTheme() === "dark" ? "Light" : "Dark");
  }

  /** @param {string | null} run name of the run, null on the list */
  showPath(run) {
    fillWhenChanged(this.crumbs, run ?? "", () => (run === null ? [el("b", {}, "Runs")] : [el("a", { href: "/" }, "Runs"), el("i", {}, "/"), el("b", { title: run }, run)]));
  }

  /** @param {Pill | null} pill */
  showPill(pill) {
    this.pill.hidden = pill === null;
    if (!pill) return;
    setAttribute(this.pill, "data-state", pill.state);
    setAttribute(this.pill, "data-shape", pill.shape);
    setAttribute(this.pill, "data-emulated", pill.emulated ? "true" : "false");
    setText(this.pillText, pill.text);
    this.retry.hidden = !pill.retry;
  }
}
