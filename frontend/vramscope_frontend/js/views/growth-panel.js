// What grew between two moments, of this recording or of another snapshot of the run.

import { api } from "../api.js";
import { el, fillWhenChanged, setText } from "../dom.js";
import { changeInUnit, count, exactBytes, inUnit, known, plural, sizeText, tableUnit } from "../format.js";
import { CATEGORY_WORDS } from "../snapshots/layer-colours.js";
import { endsNear, growthSentence, momentChoices } from "../snapshots/growth-words.js";
import { nameOf } from "../snapshots/snapshot-words.js";
import { failedPart, panel } from "./parts.js";

/** @typedef {import("./snapshot.js").Snapshot} Snapshot */
/** @typedef {import("../messages.js").GrowthPayload} GrowthPayload */

const SHOWN_ROWS = 12;

export class GrowthPanel {
  /** @param {Snapshot} view */
  constructor(view) {
    this.view = view;
    /** @type {GrowthPayload | null} */
    this.growth = null;
    /** @type {Error | null} */
    this.error = null;
    /** @type {import("../messages.js").SnapshotInfo[]} */
    this.others = [];
    this.aborting = new AbortController();
    this.from = el("select", { class: "select", "aria-label": "From", change: () => void this.load() });
    this.to = el("select", { class: "select", "aria-label": "To", change: () => void this.load() });
    this.body = el("div", { class: "body" });
    this.context = el("span", { class: "context" }, "by stack, largest change first");
    const close = el("button", { class: "button small", type: "button", click: () => this.toggle() }, "Close");
    this.element = panel("What grew", [this.context, el("div", { class: "controls" }, el("label", { class: "check" }, "from", this.from), el("label", { class: "check" }, "to", this.to), close)], this.body);
    this.element.hidden = true;
  }

  close() {
    this.aborting.abort();
  }

  toggle() {
    this.element.hidden = !this.element.hidden;
    if (this.element.hidden) return;
    void this.start();
    this.element.scrollIntoView({ block: "nearest" });
  }

  async start() {
    this.findOthers();
    this.fillChoices();
    await this.load();
  }

  /** Without the list there are still the moments of this recording. */
  findOthers() {
    this.others = (this.view.page.session.snapshots ?? []).filter((info) => info.state === "complete" && info.id !== this.view.id);
  }

  /**
   * What grew between the ends of a range, as near to them as a step ends.
   * @param {[number, number]} range
   */
  compareEnds(range) {
    const { timeline } = this.view;
    const offered = new Set(timeline ? momentChoices(timeline).map((one) => one.value) : []);
    const ends = endsNear((timeline?.steps ?? []).filter((step) => offered.has(step.moment)), range);
    if (!ends) return;
    this.element.hidden = false;
    this.findOthers();
    this.fillChoices();
    [this.from.value, this.to.value] = ends.map((moment) => `${this.view.id}@${moment}`);
    void this.load();
  }

  fillChoices() {
    const { timeline } = this.view;
    if (!timeline) return;
    const choices = momentChoices(timeline);
    const options = () => [
      el("optgroup", { label: "This recording" }, ...choices.map(({ value, text }) => el("option", { value: `${this.view.id}@${value}` }, text)), timeline.has_history ? el("option", { value: `${this.view.id}@cursor` }, "the cursor") : null),
      this.others.length ? el("optgroup", { label: "Other snapshots of the run, at their end" }, ...this.others.map((info) => el("option", { value: `${info.id}@end` }, nameOf(info) + (known(info.step) && info.name ? ` (step ${count(info.step)})` : "")))) : null,
    ];
    fillWhenChanged(this.from, choices.map((one) => one.value).join(), options);
    fillWhenChanged(this.to, choices.map((one) => one.value).join(), options);
    const [first, last] = defaults(choices);
    if (this.from.dataset.chosen !== "yes") {
      // Without a history there is only this moment: the snapshot before it is what to compare with.
      const older = this.others.find((info) => (info.taken_ns ?? 0) < (this.view.info?.taken_ns ?? 0)) ?? this.others[0];
      this.from.value = timeline.has_history || !older ? `${this.view.id}@${first}` : `${older.id}@end`;
      this.to.value = `${this.view.id}@${last}`;
      this.from.dataset.chosen = "yes";
    }
  }

  /** @param {HTMLSelectElement} select */
  chosen(select) {
    const [snapshot, at] = select.value.split("@");
    return { snapshot, at: at === "cursor" ? String(this.view.cursorMoment) : at };
  }

  cursorMoved() {
    if (!this.element.hidden && [this.from.value, this.to.value].some((value) => value.endsWith("@cursor"))) void this.load();
  }

  /** What is compared is of the device that is shown: its own moments, anew. */
  deviceChanged() {
    if (this.element.hidden) return;
    delete this.from.dataset.chosen;
    void this.start();
  }

  async load() {
    if (!this.from.value || !this.to.value) return;
    this.aborting.abort();
    this.aborting = new AbortController();
    const { signal } = this.aborting;
    const [a, b] = [this.chosen(this.from), this.chosen(this.to)];
    try {
      this.growth = await api.growth({ a: a.snapshot, b: b.snapshot, a_at: a.at, b_at: b.at, device: this.view.view.device }, signal);
      this.error = null;
    } catch (error) {
      if (signal.aborted) return;
      this.error = /** @type {Error} */ (error);
    }
    this.update();
  }

  update() {
    const { growth, error } = this;
    if (this.element.hidden) return;
    if (error) {
      fillWhenChanged(this.body, error.message, () => [failedPart("The comparison", error, () => void this.load())]);
      return;
    }
    if (!growth) return;
    setText(this.context, growth.by_request ? "by size, largest change first" : "by stack, largest change first");
    fillWhenChanged(this.body, JSON.stringify([this.from.value, this.to.value, growth.before_bytes, growth.after_bytes, growth.rows[0]]), () => {
      const unit = tableUnit(Math.max(growth.before_bytes, growth.after_bytes));
      const changed = growth.rows.filter((row) => row.after_bytes !== row.before_bytes || row.after_blocks !== row.before_blocks);
      const rows = changed.slice(0, SHOWN_ROWS).map((row) => {
        const change = row.after_bytes - row.before_bytes;
        return el("tr", {}, el("td", { title: row.file }, el("code", {}, row.label)), el("td", {}, CATEGORY_WORDS[row.category] ?? row.category), ...[[inUnit(row.before_bytes, unit), exactBytes(row.before_bytes)], [inUnit(row.after_bytes, unit), exactBytes(row.after_bytes)], [changeInUnit(change, unit), exactBytes(change)], [countChange(row.after_blocks - row.before_blocks), `${count(row.before_blocks)} → ${count(row.after_blocks)}`], [inUnit(row.survived_bytes, unit), `${plural(row.survived_blocks, "block")} live at both`]].map(([text, title]) => el("td", { class: "number", title }, text)));
      });
      const heads = [growth.by_request ? "Blocks" : "Stack", "For", `>Before, ${unit.name}`, ">After", ">Change", ">Blocks", ">Live at both"];
      const table = el("table", { class: "data", "aria-label": "Growth by stack" }, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col", class: head.startsWith(">") ? "number" : null }, head.replace(">", ""))))), el("tbody", {}, ...rows));
      const sizes = growth.by_request ? " Without stacks only the size that was asked for tells blocks apart." : "";
      const sure = growth.is_certain ? "" : " A block counts as the same if address, size and stack agree.";
      const notes = el("p", { class: "ink3" }, `${sizeText(growth.survived_bytes, 2)} are live at both moments.${sure}${sizes} Compare the same point of two steps: within a step everything grows and shrinks.`);
      return [el("p", { class: "sentence" }, growthSentence(growth)), changed.length ? table : null, notes];
    });
  }
}

/** @param {number} change */
function countChange(change) {
  return change > 0 ? `+${count(change)}` : count(change);
}

/**
 * From an early step end, when everything that stays is there, to the last one.
 * @param {{value: number, text: string}[]} choices
 */
function defaults(choices) {
  const last = choices.at(-1)?.value ?? -1;
  return [choices[Math.min(2, Math.max(0, choices.length - 2))]?.value ?? -1, last];
}
