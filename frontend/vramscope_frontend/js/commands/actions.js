// The action buttons of a run: "Free cache…" and the menu of the rest, off with their reason. On a
// narrow page all of them are in the menu.

import { el, setAttribute } from "../dom.js";
import { reasonNotToAct } from "../run-state.js";
import { CATALOGUE, commandEntry } from "./catalogue.js";

/** @typedef {import("../messages.js").Run} Run */
/** @typedef {import("../socket.js").Link} Link */

export class Actions {
  /** @param {(name: string) => void} open */
  constructor(open) {
    this.open = open;
    this.free = el("button", { class: "button when-wide", type: "button", "data-command": "empty_cache", click: () => open("empty_cache") }, "Free cache…");
    this.snapshot = el("button", { class: "button when-wide", type: "button", "data-command": "snapshot", click: () => open("snapshot") }, "Take snapshot…");
    this.items = CATALOGUE.filter((entry) => entry.menu !== null).map((entry) => {
      const reason = el("small", {});
      const button = el("button", { class: ["empty_cache", "snapshot"].includes(entry.name) ? "when-narrow" : null, type: "button", role: "menuitem", "data-command": entry.name, click: () => this.choose(entry.name) }, entry.menu, reason);
      return { entry, button, reason };
    });
    this.list = el("div", { class: "menu-list", role: "menu", hidden: true }, ...this.items.map((item) => item.button));
    this.more = el("button", { class: "button", type: "button", "aria-haspopup": "menu", "aria-expanded": "false", click: () => this.toggle(this.list.hidden) }, el("span", { class: "when-wide" }, "More actions ▾"), el("span", { class: "when-narrow" }, "Actions ▾"));
    this.menu = el("div", { class: "menu" }, this.more, this.list);
    this.menu.addEventListener("keydown", (event) => this.onKey(event));
    this.onOutside = (/** @type {PointerEvent} */ event) => {
      if (event.target instanceof Node && !this.menu.contains(event.target)) this.toggle(false);
    };
    document.addEventListener("pointerdown", this.onOutside);
    this.element = el("div", { class: "actions" }, this.snapshot, this.free, this.menu);
  }

  close() {
    document.removeEventListener("pointerdown", this.onOutside);
  }

  /** @param {boolean} shown */
  toggle(shown) {
    this.list.hidden = !shown;
    setAttribute(this.more, "aria-expanded", shown ? "true" : "false");
    if (shown) this.usable[0]?.focus();
  }

  /** Entries that can be chosen now: a narrow page has one more. */
  get usable() {
    return this.items.map((item) => item.button).filter((button) => !button.disabled && button.offsetParent !== null);
  }

  /** @param {string} name */
  choose(name) {
    this.toggle(false);
    this.more.focus();
    this.open(name);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.key === "Escape" && !this.list.hidden) {
      event.stopPropagation();
      this.toggle(false);
      this.more.focus();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const enabled = this.usable;
    const at = enabled.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    enabled[(at + (event.key === "ArrowDown" ? 1 : -1) + enabled.length) % enabled.length]?.focus();
    event.preventDefault();
  }

  /**
   * Why a command cannot be sent now; null when it can.
   * @param {string} name
   * @param {Run | null} run
   * @param {Link} link
   * @param {string[]} scopes
   */
  reasonOf(name, run, link, scopes) {
    return reasonNotToAct({ run, link, scopes, command: name, needsControl: commandEntry(name)?.needsControl ?? true });
  }

  /**
   * @param {Run | null} run
   * @param {Link} link
   * @param {string[]} scopes
   */
  update(run, link, scopes) {
    const reasonOf = (/** @type {import("./catalogue.js").CommandEntry} */ entry) => this.reasonOf(entry.name, run, link, scopes);
    const reason = reasonOf(/** @type {any} */ (CATALOGUE[0]));
    this.free.disabled = reason !== null;
    setAttribute(this.free, "title", reason ?? "Dry run first; nothing is changed yet (e)");
    const whyNot = this.reasonOf("snapshot", run, link, scopes);
    this.snapshot.disabled = whyNot !== null;
    setAttribute(this.snapshot, "title", whyNot ?? "What it costs comes first; nothing is done yet (s)");
    for (const item of this.items) {
      const why = reasonOf(item.entry);
      item.button.disabled = why !== null;
      if (item.reason.textContent !== (why ?? "")) item.reason.textContent = why ?? "";
    }
  }
}
