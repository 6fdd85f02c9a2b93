// Who holds the memory at the cursor: the tree of calls, or the same as rows.

import { el, fillWhenChanged, setText } from "../dom.js";
import { count, exactBytes, inUnit, percent, plural, sizeText, tableUnit } from "../format.js";
import { Icicle } from "../snapshots/icicle.js";
import { pathTo, searchTree } from "../snapshots/icicle-layout.js";
import { CATEGORY_WORDS } from "../snapshots/layer-colours.js";
import { dataTable, failedPart, Segmented } from "./parts.js";

/** @typedef {import("./snapshot.js").Snapshot} Snapshot */
/** @typedef {import("../messages.js").MomentPayload} MomentPayload */
/** @typedef {"bytes" | "blocks" | "label"} Order */

export class HeldPanel {
  /** @param {Snapshot} view */
  constructor(view) {
    this.view = view;
    /** Node whose calls fill the width. */
    this.root = 0;
    /** @type {Order} */
    this.order = "bytes";
    this.search = el("input", { type: "search", placeholder: "Find a function or a file", "aria-label": "Find in the calls", input: () => this.searched(), keydown: (/** @type {KeyboardEvent} */ event) => this.onSearchKey(event) });
    this.found = el("span", { class: "found", "aria-live": "polite" });
    this.title = el("h2", {});
    this.fold = el("input", { type: "checkbox", change: () => view.setView({ fold: this.fold.checked }) });
    this.drawn = new Segmented("Shown as", [{ value: "icicle", text: "Icicle" }, { value: "table", text: "Table" }], (drawn) => view.setView({ drawn }));
    this.foldLabel = el("label", { class: "check" }, this.fold, "Fold wrappers");
    this.finder = el("span", { class: "finder" }, this.search, this.found);
    this.path = el("nav", { class: "call-path", "aria-label": "Calls above what is shown", hidden: true });
    this.icicle = new Icicle(() => this.model(), { onPick: (node) => this.open(node), onError: (error) => this.problem.replaceChildren(failedPart("The chart library", error, () => location.reload())) });
    this.problem = el("div", {});
    this.table = el("div", { class: "held-table", tabindex: 0 });
    this.context = el("span", { class: "context" }, "caller above, callee below · width is bytes");
    this.element = el("section", { class: "panel", "aria-label": "Who holds it at that moment" }, el("header", {}, this.title, this.context, el("div", { class: "controls" }, this.foldLabel, this.finder, this.drawn.element)), this.problem, this.path, el("div", { class: "body icicle-body" }, this.icicle.element, this.table));
  }

  close() {
    this.icicle.close();
  }

  /** @returns {import("../snapshots/icicle.js").IcicleModel | null} */
  model() {
    const { moment } = this.view;
    return moment && moment.has_stacks && this.view.view.drawn === "icicle" ? { tree: moment.tree, root: Math.min(this.root, moment.tree.parent.length - 1), search: this.search.value } : null;
  }

  /** Another moment has other calls: the same call is looked for in it. */
  momentChanged(/** @type {MomentPayload | null} */ before, /** @type {MomentPayload} */ after) {
    if (before && this.root > 0 && this.root < before.tree.parent.length) {
      const names = pathTo(before.tree, this.root).map((node) => `${before.tree.name[node]} ${before.tree.place[node]}`);
      let node = 0;
      for (const name of names.slice(1)) {
        const next = after.tree.parent.findIndex((parent, at) => parent === node && `${after.tree.name[at]} ${after.tree.place[at]}` === name);
        if (next < 0) break;
        node = next;
      }
      this.root = node;
    } else this.root = 0;
    this.icicle.invalidate();
  }

  /** @param {number} node */
  open(node) {
    const { moment } = this.view;
    if (!moment) return;
    this.root = node === this.root ? Math.max(0, moment.tree.parent[node]) : node;
    this.icicle.invalidate();
    this.update();
  }

  /** Escape: one call up; false at the top. */
  up() {
    if (this.search.value) {
      this.search.value = "";
      this.searched();
      return true;
    }
    const { moment } = this.view;
    if (!moment || this.root === 0) return false;
    this.open(this.root);
    return true;
  }

  searched() {
    this.icicle.invalidate();
    this.update();
  }

  /** @param {KeyboardEvent} event */
  onSearchKey(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    if (!this.up()) this.search.blur();
  }

  update() {
    const { moment, view } = this.view;
    this.drawn.choose(view.drawn);
    this.fold.checked = view.fold;
    const isIcicle = view.drawn === "icicle" && moment?.has_stacks !== false;
    for (const part of [this.drawn.element, this.finder, this.foldLabel]) part.hidden = moment?.has_stacks === false;
    this.icicle.element.hidden = !isIcicle || !moment;
    this.table.hidden = isIcicle;
    this.element.hidden = !moment && !this.view.momentError;
    const { momentError } = this.view;
    fillWhenChanged(this.problem, momentError?.message ?? "", () => (momentError ? [failedPart("This moment", momentError, () => void this.view.loadMoment())] : []));
    if (!moment) return;
    setText(this.context, isIcicle ? "caller above, callee below · width is bytes" : `${plural(moment.blocks, "block")} · ${sizeText(moment.live_bytes, 2)}`);
    const result = searchTree(moment.tree, this.search.value);
    setText(this.found, result ? `${plural(result.found.size, "match", "matches")} · ${percent(result.share)}` : "");
    setText(this.title, moment.has_stacks ? "Who holds it at that moment" : "What was live");
    this.showPath(moment);
    if (!isIcicle) this.showTable(moment);
  }

  /** @param {MomentPayload} moment */
  showPath(moment) {
    const path = pathTo(moment.tree, this.root);
    this.path.hidden = path.length < 2 || this.view.view.drawn !== "icicle";
    fillWhenChanged(this.path, `${moment.moment}/${path.join(".")}`, () => [
      ...path.slice(0, -1).flatMap((node) => [el("button", { class: "button link", type: "button", click: () => this.open(node) }, moment.tree.name[node]), el("span", {}, "›")]),
      el("b", {}, [moment.tree.name[this.root], moment.tree.place[this.root]].filter(Boolean).join(" ")), el("kbd", {}, "Esc"),
    ]);
  }

  /** @param {MomentPayload} moment */
  showTable(moment) {
    const wanted = this.search.value.trim().toLowerCase();
    fillWhenChanged(this.table, [moment.device, moment.moment, moment.folded, this.order, wanted].join("/"), () => {
      const unit = tableUnit(moment.live_bytes);
      const rows = moment.by_stack.filter((held) => !wanted || held.label.toLowerCase().includes(wanted) || held.file.toLowerCase().includes(wanted));
      const order = this.order;
      rows.sort((a, b) => (order === "label" ? a.label.localeCompare(b.label) : b[order] - a[order]));
      const head = (/** @type {Order} */ value, /** @type {string} */ text, className = "") => el("th", { scope: "col", class: className, "aria-sort": order === value ? (value === "label" ? "ascending" : "descending") : null }, el("button", { class: "button link", type: "button", click: () => this.sortBy(value) }, text));
      const stacks = el("table", { class: "data", "aria-label": "Live memory by stack" },
        el("thead", {}, el("tr", {}, head("label", "Stack"), el("th", { scope: "col" }, "For"), head("blocks", "Blocks", "number"), head("bytes", unit.name, "number"), el("th", { scope: "col", class: "number" }, "Share"))),
        el("tbody", {}, ...rows.map((held) => el("tr", {}, el("td", { title: held.file }, el("code", {}, held.label)), el("td", {}, CATEGORY_WORDS[held.category ?? ""] ?? "several"), el("td", { class: "number" }, count(held.blocks)), el("td", { class: "number", title: exactBytes(held.bytes) }, inUnit(held.bytes, unit)), el("td", { class: "number" }, percent(moment.live_bytes ? held.bytes / moment.live_bytes : 0))))));
      const sizes = dataTable(["Size of the block", ">Blocks", `>${unit.name}`, ">Share"], moment.by_size.map((held) => [held.label, count(held.blocks), el("span", { title: exactBytes(held.bytes) }, inUnit(held.bytes, unit)), percent(moment.live_bytes ? held.bytes / moment.live_bytes : 0)]), "Live memory by size");
      const blocks = dataTable(["Block", ">Size", ">Asked for", "From", ">Live for", ""], moment.largest.slice(0, 20).map((block) => [el("code", {}, block.address), el("span", { title: exactBytes(block.size_bytes) }, sizeText(block.size_bytes, 2)), el("span", { title: exactBytes(block.requested_bytes) }, sizeText(block.requested_bytes, 2)), block.label, block.age_us === null ? "–" : `${(block.age_us / 1000).toLocaleString("en-US", { maximumFractionDigits: 1 })} ms`, block.is_pending ? "freed, in use by another stream" : ""]), "Largest blocks");
      return [moment.has_stacks ? stacks : sizes, el("h3", {}, "Largest blocks"), blocks];
    });
  }

  /** @param {Order} order */
  sortBy(order) {
    this.order = order;
    this.update();
  }
}
