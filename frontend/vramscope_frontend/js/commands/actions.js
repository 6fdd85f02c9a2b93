// The action buttons of a run: "Free cache…" and the menu of the rest, off with their reason. On a
// narrow page all of them are in the menu. Settings and the job's own commands are on their page.

import { el, setAttribute, setText } from "../dom.js";
import { reasonNotToAct } from "./rights.js";
import { commandEntry, GROUPS, needsAllRanks } from "./catalogue.js";

/** @typedef {import("../messages.js").Run} Run */
/** @typedef {import("../socket.js").Link} Link */

/** What is offered in the menu: settings are rarely wanted. */
const IN_MENU = GROUPS.filter(({ title }) => title !== "Settings").map(({ title, entries }) => ({ title, entries: entries.filter((entry) => entry.menu !== null) }));

export class Actions {
  /**
   * @param {(name: string) => void} open
   * @param {string} page address of the page of commands
   */
  constructor(open, page) {
    this.open = open;
    this.free = el("button", { class: "button when-wide", type: "button", "data-command": "empty_cache", click: () => open("empty_cache") }, "Free cache…");
    this.snapshot = el("button", { class: "button when-wide", type: "button", "data-command": "snapshot", click: () => open("snapshot") }, "Take snapshot…");
    this.items = IN_MENU.flatMap(({ entries }) => entries.map((entry) => this.item(entry)));
    this.page = el("a", { role: "menuitem", href: page, click: () => this.toggle(false) }, "Settings, own commands, policies, audit");
    const parts = IN_MENU.map(({ title, entries }) => el("div", { class: "menu-group", role: "group", "aria-label": title }, el("span", { class: "menu-title", "aria-hidden": "true" }, title), ...this.items.filter(({ entry }) => entries.includes(entry)).map(({ button }) => button)));
    this.why = el("p", { class: "menu-why", hidden: true });
    this.list = el("div", { class: "menu-list", role: "menu", hidden: true }, this.why, el("div", { class: "menu-groups" }, ...parts), this.page);
    this.more = el("button", { class: "button", type: "button", "aria-haspopup": "menu", "aria-expanded": "false", click: () => this.toggle(this.list.hidden) }, el("span", { class: "when-wide" }, "More actions ▾"), el("span", { class: "when-narrow" }, "Actions ▾"));
    this.menu = el("div", { class: "menu" }, this.more, this.list);
    this.menu.addEventListener("keydown", (event) => this.onKey(event));
    this.onOutside = (/** @type {PointerEvent} */ event) => {
      if (event.target instanceof Node && !this.menu.contains(event.target)) this.toggle(false);
    };
    document.addEventListener("pointerdown", this.onOutside);
    this.element = el("div", { class: "actions" }, this.snapshot, this.free, this.menu);
  }

  /** @param {import("./catalogue.js").CommandEntry} entry */
  item(entry) {
    const reason = el("small", {});
    const button = el("button", { class: ["empty_cache", "snapshot"].includes(entry.name) ? "when-narrow" : null, type: "button", role: "menuitem", "data-command": entry.name, click: () => this.choose(entry.name) }, entry.menu, reason);
    if (entry.dangerous) button.classList.add("danger");
    return { entry, button, reason };
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
    const entry = commandEntry(name);
    return reasonNotToAct({ run, link, scopes, command: name, needsControl: entry?.needsControl ?? true, wholeRun: needsAllRanks(entry) });
  }

  /**
   * @param {Run | null} run
   * @param {Link} link
   * @param {string[]} scopes
   */
  update(run, link, scopes) {
    const reasons = new Map(this.items.map(({ entry }) => [entry, this.reasonOf(entry.name, run, link, scopes)]));
    const reason = this.reasonOf("empty_cache", run, link, scopes);
    this.free.disabled = reason !== null;
    setAttribute(this.free, "title", reason ?? "Dry run first; nothing is changed yet (e)");
    const whyNot = this.reasonOf("snapshot", run, link, scopes);
    this.snapshot.disabled = whyNot !== null;
    setAttribute(this.snapshot, "title", whyNot ?? "What it costs comes first; nothing is done yet (s)");
    // A reason that most of them share is said once, on top.
    const shared = mostCommon([...reasons.values()]);
    this.why.hidden = shared === null;
    setText(this.why, shared ?? "");
    for (const item of this.items) {
      const why = reasons.get(item.entry) ?? null;
      item.button.disabled = why !== null;
      setAttribute(item.button, "title", why);
      setText(item.reason, why !== null && why !== shared ? why : "");
    }
  }
}

/** @param {(string | null)[]} reasons */
function mostCommon(reasons) {
  /** @type {Map<string, number>} */
  const times = new Map();
  for (const reason of reasons) if (reason !== null) times.set(reason, (times.get(reason) ?? 0) + 1);
  const [most] = [...times].sort((a, b) => b[1] - a[1]);
  return most && most[1] > 3 ? most[0] : null;
}
