// Who holds the memory at a moment: the tree of calls, caller above callee, width is bytes. Plotly
// draws; labels, pointer and keyboard are ours, by the same layout.

import { loadPlotly } from "../charts/plotly.js";
import { baseLayout, faded, readTokens, STATIC } from "../charts/theme.js";
import { el } from "../dom.js";
import { exactBytes, percent, plural, sizeText } from "../format.js";
import { cellsBelow, labelOf, searchTree } from "./icicle-layout.js";
import { hueOf } from "./layer-colours.js";

/** @typedef {import("../messages.js").CallTree} CallTree */
/** @typedef {import("../charts/theme.js").Tokens} Tokens */
/** @typedef {import("./icicle-layout.js").Cell} Cell */
/** @typedef {{tree: CallTree, root: number, search: string}} IcicleModel */

const TALLEST_PX = 35;
const LEAST_PX = 18;
const WANTED_PX = 290;
const OTHERS = 0.35;

export class Icicle {
  /**
   * @param {() => IcicleModel | null} build
   * @param {{onPick: (node: number) => void, onError: (error: Error) => void}} handlers
   */
  constructor(build, handlers) {
    this.build = build;
    this.figure = el("div", { class: "figure", role: "img" });
    this.surface = el("div", { class: "icicle-surface", tabindex: 0, role: "application", "aria-label": "Tree of calls: arrow keys move, Enter opens, Escape goes up" });
    this.focus = el("div", { class: "icicle-focus", hidden: true });
    this.chip = el("div", { class: "chip", hidden: true });
    this.element = el("div", { class: "icicle" }, this.figure, this.focus, this.surface, this.chip);
    /** @type {Cell[]} */
    this.cells = [];
    /** @type {IcicleModel | null} */
    this.model = null;
    this.rowPx = TALLEST_PX;
    this.at = 0;
    this.ready = false;
    this.drawing = false;
    this.dirty = false;
    this.frame = 0;
    this.surface.addEventListener("pointermove", (event) => this.show(this.hit(event), event));
    this.surface.addEventListener("pointerleave", () => this.show(null, null));
    this.surface.addEventListener("click", (event) => {
      const cell = this.hit(event);
      if (cell) handlers.onPick(cell.node);
    });
    this.surface.addEventListener("keydown", (event) => this.onKey(event, handlers.onPick));
    this.surface.addEventListener("blur", () => this.moveTo(null));
    this.resizes = new ResizeObserver(() => this.invalidate());
    this.resizes.observe(this.element);
    loadPlotly().then(() => {
      this.ready = true;
      this.invalidate();
    }, handlers.onError);
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.resizes.disconnect();
    if (this.ready) Plotly.purge(this.figure);
    this.ready = false;
  }

  invalidate() {
    this.dirty = true;
    if (this.ready && !this.drawing) this.frame ||= requestAnimationFrame(() => void this.draw());
  }

  async draw() {
    this.frame = 0;
    const model = this.build();
    const width = this.element.clientWidth;
    if (!model || !this.ready || this.drawing || width === 0) return;
    this.dirty = false;
    this.drawing = true;
    this.model = model;
    this.cells = cellsBelow(model.tree, model.root);
    this.at = Math.min(this.at, this.cells.length - 1);
    const rows = this.cells.reduce((most, cell) => Math.max(most, cell.depth), 0) + 1;
    this.rowPx = Math.max(LEAST_PX, Math.min(TALLEST_PX, Math.floor(WANTED_PX / rows)));
    const height = rows * this.rowPx;
    const tokens = readTokens();
    try {
      await Plotly.react(this.figure, /** @type {Plotly.Data[]} */ ([trace(model, this.cells, width, tokens)]), { ...baseLayout(tokens), width, height, margin: { l: 0, r: 0, t: 0, b: 0 } }, STATIC);
    } finally {
      this.drawing = false;
    }
    Object.assign(this.surface.style, { left: "0", top: "0", width: "100%", height: `${height}px` });
    this.element.style.height = `${height}px`;
    const total = model.tree.bytes[model.root];
    const largest = this.cells.filter((cell) => cell.depth > 0).sort((a, b) => b.depth - a.depth || model.tree.bytes[b.node] - model.tree.bytes[a.node])[0];
    this.figure.setAttribute("aria-label", `Calls that hold ${sizeText(total, 2)}${largest ? `; deepest: ${model.tree.name[largest.node]} ${model.tree.place[largest.node]}` : ""}. The view "Table" has the same as rows.`);
    if (this.dirty) this.invalidate();
  }

  /** @param {MouseEvent} event */
  hit(event) {
    const box = this.surface.getBoundingClientRect();
    const depth = Math.floor((event.clientY - box.top) / this.rowPx);
    const at = (event.clientX - box.left) / box.width;
    return this.cells.find((cell) => cell.depth === depth && at >= cell.x0 && at < cell.x1) ?? null;
  }

  /**
   * @param {Cell | null} cell
   * @param {{clientX: number, clientY: number} | null} at
   */
  show(cell, at) {
    this.chip.hidden = !cell || !this.model;
    if (!cell || !this.model) return;
    const { tree } = this.model;
    const { node } = cell;
    const place = tree.place[node] ? ` ${tree.file[node]}:${tree.place[node].split(":").at(-1)}` : "";
    this.chip.replaceChildren(`${tree.name[node]}${place}`, el("small", {}, `${sizeText(tree.bytes[node], 2)} · ${percent(tree.bytes[0] ? tree.bytes[node] / tree.bytes[0] : 0)} · ${plural(tree.blocks[node], "block")} · ${exactBytes(tree.bytes[node])}`));
    const box = this.element.getBoundingClientRect();
    const x = at ? at.clientX - box.left : cell.x0 * box.width;
    const y = at ? at.clientY - box.top : cell.depth * this.rowPx;
    this.chip.style.left = `${Math.max(0, Math.min(x + 12, box.width - this.chip.offsetWidth - 4))}px`;
    this.chip.style.top = `${y + 18}px`;
  }

  /**
   * @param {KeyboardEvent} event
   * @param {(node: number) => void} pick
   */
  onKey(event, pick) {
    const here = this.cells[this.at];
    if (!here || !this.model) return;
    const { tree } = this.model;
    const row = this.cells.filter((cell) => cell.depth === here.depth);
    const place = row.indexOf(here);
    /** @type {Cell | undefined} */
    let next;
    if (event.key === "ArrowRight") next = row[place + 1];
    else if (event.key === "ArrowLeft") next = row[place - 1];
    else if (event.key === "ArrowDown") next = this.cells.find((cell) => tree.parent[cell.node] === here.node && cell.depth === here.depth + 1);
    else if (event.key === "ArrowUp") next = this.cells.find((cell) => cell.node === tree.parent[here.node]);
    else if (event.key === "Enter") {
      pick(here.node);
      next = here;
    } else return;
    event.preventDefault();
    event.stopPropagation();
    if (next) this.moveTo(next);
  }

  /** @param {Cell | null} cell */
  moveTo(cell) {
    this.focus.hidden = cell === null;
    this.show(cell, null);
    if (!cell || !this.model) return;
    this.at = this.cells.indexOf(cell);
    Object.assign(this.focus.style, { left: `${cell.x0 * 100}%`, width: `${(cell.x1 - cell.x0) * 100}%`, top: `${cell.depth * this.rowPx}px`, height: `${this.rowPx}px` });
    this.surface.setAttribute("aria-label", `${labelOf(this.model.tree, cell.node, 10_000)}. Arrow keys move, Enter opens, Escape goes up`);
  }
}

/**
 * @param {IcicleModel} model
 * @param {Cell[]} cells
 * @param {number} width
 * @param {Tokens} tokens
 */
function trace({ tree, root, search }, cells, width, tokens) {
  const found = searchTree(tree, search)?.found ?? null;
  const colours = cells.map((cell) => colourOf(tree, cell, tokens, found === null || found.has(cell.node)));
  return {
    type: "icicle",
    ids: cells.map((cell) => String(cell.node)),
    labels: cells.map((cell) => tree.name[cell.node]),
    parents: cells.map((cell) => (cell.node === root ? "" : String(tree.parent[cell.node]))),
    values: cells.map((cell) => tree.bytes[cell.node]),
    text: cells.map((cell) => escaped(labelOf(tree, cell.node, (cell.x1 - cell.x0) * width))),
    textinfo: "text",
    textposition: "middle left",
    textfont: { family: getComputedStyle(document.documentElement).getPropertyValue("--mono"), size: 12, color: colours.map((colour) => colour.text) },
    marker: { colors: colours.map((colour) => colour.fill), line: { width: 0 }, pad: 0 },
    branchvalues: "total",
    tiling: { orientation: "v", pad: 1 },
    pathbar: { visible: false },
    leaf: { opacity: 1 },
    root: { color: tokens.raise },
    hoverinfo: "skip",
    sort: true,
    domain: { x: [0, 1], y: [0, 1] },
  };
}

/**
 * @param {CallTree} tree
 * @param {Cell} cell
 * @param {Tokens} tokens
 * @param {boolean} isFound
 */
function colourOf(tree, cell, tokens, isFound) {
  const category = tree.category[cell.node];
  const strength = isFound ? 1 : OTHERS;
  if (category === null || cell.node === 0) return { fill: faded(tokens.line, strength), text: isFound ? tokens.ink : tokens.ink3 };
  const hue = hueOf(category, tokens);
  return { fill: faded(hue, strength), text: isFound ? readableOn(hue, tokens) : tokens.ink2 };
}

/**
 * Ink that can be read on a colour: near-black or white, whichever differs more.
 * @param {string} colour
 * @param {Tokens} tokens
 */
function readableOn(colour, tokens) {
  const value = Number.parseInt(colour.slice(1), 16);
  const linear = [value >> 16, (value >> 8) & 255, value & 255].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  if (Number.isNaN(light)) return tokens.ink;
  return (light + 0.05) / 0.055 > 1.05 / (light + 0.05) ? "#0e1116" : "#ffffff";
}

/**
 * Plotly reads a few tags out of texts: a name such as `<module>` must stay one.
 * @param {string} text
 */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
