// Head-room of every rank over time: outliers on top and large, all others below and thin. A cell
// is the least head-room in its stretch of time.

import { el } from "../dom.js";
import { known, sizeText } from "../format.js";
import { baseLayout, readTokens, STATIC } from "./theme.js";
import { loadPlotly } from "./plotly.js";
import { clockTicks } from "./ticks.js";

/** @typedef {import("./theme.js").Tokens} Tokens */
/** @typedef {{rank: number, label: string, isGone: boolean, values: (number | null)[], free: number | null, severity: "crit" | "warn" | "ok" | null}} HeatRow */
/** @typedef {{t: number[], origin_ns: number, outliers: HeatRow[], others: HeatRow[]}} HeatModel */

const LEAST_MS = 1000;
const MARGIN = { l: 84, r: 84, t: 8, b: 30 };
const OUTLIER_PX = 30;
const GAP_PX = 20;
/** Upper ends of the classes in percent of the device; colours in the same order (theme.scale). */
const CLASSES = [2.5, 5, 10, 16, 20];
const TOP = 22;

export class Heatmap {
  /**
   * @param {() => HeatModel | null} build
   * @param {{onPoint: (at: {row: HeatRow, t: number, index: number} | null, event: PointerEvent) => void, onPick: (rank: number) => void, onError: (error: Error) => void}} handlers
   */
  constructor(build, handlers) {
    this.build = build;
    this.figure = el("div", { class: "figure", role: "img", "aria-label": "Head-room of every rank over time; the table below holds the same ranks" });
    this.surface = el("div", { class: "surface" });
    this.chip = el("div", { class: "chip", hidden: true });
    this.element = el("div", { class: "heat" }, this.figure, this.surface, this.chip);
    /** @type {HeatModel | null} */
    this.model = null;
    this.ready = false;
    this.drawing = false;
    this.timer = 0;
    this.drawn_ms = -Infinity;
    this.isPointed = false;
    this.surface.addEventListener("pointermove", (event) => {
      this.isPointed = true;
      handlers.onPoint(this.hit(event), event);
    });
    this.surface.addEventListener("pointerleave", (event) => {
      this.isPointed = false;
      handlers.onPoint(null, event);
    });
    this.surface.addEventListener("click", (event) => {
      const at = this.hit(event);
      if (at) handlers.onPick(at.row.rank);
    });
    this.resizes = new ResizeObserver(() => this.invalidate(true));
    this.resizes.observe(this.element);
    loadPlotly().then(() => {
      this.ready = true;
      this.invalidate(true);
    }, handlers.onError);
  }

  close() {
    clearTimeout(this.timer);
    this.resizes.disconnect();
    if (this.ready) Plotly.purge(this.figure);
    this.ready = false;
  }

  invalidate(urgent = false) {
    if (!this.ready || document.hidden || (this.timer && !urgent)) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.draw(), urgent ? 0 : Math.max(0, this.drawn_ms + LEAST_MS - performance.now()));
  }

  async draw() {
    this.timer = 0;
    const width = this.element.clientWidth - 8;
    const model = this.build();
    if (!model || !this.ready || this.drawing || width <= 0) return;
    this.drawing = true;
    this.model = model;
    const tokens = readTokens();
    const sizes = this.sizes(model);
    const height = sizes.total + MARGIN.t + MARGIN.b;
    try {
      await Plotly.react(this.figure, /** @type {Plotly.Data[]} */ (traces(model, tokens)), layout(model, tokens, sizes, width, height), STATIC);
    } finally {
      this.drawing = false;
      this.drawn_ms = performance.now();
    }
    Object.assign(this.surface.style, { left: `${MARGIN.l + 4}px`, right: `${MARGIN.r + 4}px`, top: `${MARGIN.t + 8}px`, bottom: "auto", height: `${sizes.total}px` });
  }

  /** @param {HeatModel} model */
  sizes(model) {
    const many = model.others.length;
    const rowPx = many > 24 ? 7.5 : many > 10 ? 14 : OUTLIER_PX;
    const outliers = model.outliers.length * OUTLIER_PX;
    const others = many * rowPx;
    const gap = outliers && others ? GAP_PX : 0;
    return { outliers, others, gap, rowPx, total: outliers + gap + others };
  }

  /**
   * @param {PointerEvent | MouseEvent} event
   * @returns {{row: HeatRow, t: number, index: number} | null}
   */
  hit(event) {
    const { model } = this;
    if (!model || model.t.length === 0) return null;
    const box = this.surface.getBoundingClientRect();
    const sizes = this.sizes(model);
    const y = event.clientY - box.top;
    const index = Math.min(model.t.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * model.t.length)));
    const row = y < sizes.outliers ? model.outliers[Math.floor(y / OUTLIER_PX)] : model.others[Math.floor((y - sizes.outliers - sizes.gap) / sizes.rowPx)];
    return row ? { row, t: model.t[index], index } : null;
  }

  /**
   * @param {string} text
   * @param {PointerEvent | MouseEvent | null} event
   */
  showChip(text, event) {
    this.chip.hidden = !event;
    if (!event) return;
    this.chip.textContent = text;
    const box = this.element.getBoundingClientRect();
    const x = event.clientX - box.left;
    this.chip.style.left = x < box.width / 2 ? `${x + 12}px` : "";
    this.chip.style.right = x < box.width / 2 ? "" : `${box.width - x + 12}px`;
    this.chip.style.top = `${event.clientY - box.top - 30}px`;
  }
}

/**
 * @param {HeatModel} model
 * @param {Tokens} tokens
 */
function traces(model, tokens) {
  /** @type {[number, string][]} */
  const colorscale = [];
  let from = 0;
  [...CLASSES, TOP].forEach((end, i) => {
    colorscale.push([from, tokens.scale[i]], [end / TOP, tokens.scale[i]]);
    from = end / TOP;
  });
  const part = (/** @type {HeatRow[]} */ rows, /** @type {string} */ yaxis) => ({
    type: "heatmap",
    x: model.t,
    y: rows.map((_, i) => i),
    z: rows.map((row) => row.values.map((value) => (known(value) ? Math.min(TOP, value * 100) : null))),
    xaxis: "x",
    yaxis,
    ygap: 1,
    zmin: 0,
    zmax: TOP,
    colorscale,
    showscale: false,
    hoverinfo: "skip",
  });
  return [...(model.others.length ? [part(model.others, "y")] : []), ...(model.outliers.length ? [part(model.outliers, "y2")] : [])];
}

/**
 * @param {HeatModel} model
 * @param {Tokens} tokens
 * @param {{outliers: number, others: number, gap: number, rowPx: number, total: number}} sizes
 * @param {number} width
 * @param {number} height
 * @returns {Partial<Plotly.Layout>}
 */
function layout(model, tokens, sizes, width, height) {
  const bin = model.t.length > 1 ? model.t[1] - model.t[0] : 1;
  const range = [(model.t[0] ?? 0) - bin / 2, (model.t.at(-1) ?? 0) + bin / 2];
  const split = sizes.total ? sizes.others / sizes.total : 1;
  const every = sizes.rowPx < 12 ? 10 : 1;
  // Who is gone is named, however thin its row; its neighbours leave it the room.
  const gone = model.others.flatMap((row, i) => (row.isGone ? [i] : []));
  const labelled = (/** @type {HeatRow} */ row, /** @type {number} */ i, /** @type {number} */ step) => row.isGone || (i % step === 0 && (step === 1 || !gone.some((other) => Math.abs(other - i) < 2)));
  const axis = (/** @type {HeatRow[]} */ rows, /** @type {number} */ step, /** @type {[number, number]} */ domain, /** @type {boolean} */ bold) => ({
    domain, range: [rows.length - 0.5, -0.5], fixedrange: true, zeroline: false, showgrid: false, ticks: /** @type {const} */ (""), tickmode: /** @type {const} */ ("array"),
    tickvals: rows.flatMap((row, i) => (labelled(row, i, step) ? [i] : [])), ticktext: rows.flatMap((row, i) => (labelled(row, i, step) ? [bold ? `<b>${row.isGone ? "✕" : "▲"} ${row.label}</b>` : row.isGone ? `✕ ${row.label}` : row.label] : [])),
  });
  const right = (/** @type {string} */ text, /** @type {number} */ y, /** @type {string} */ yref, /** @type {string} */ color) => ({ text, xref: "paper", x: 1, xshift: 8, xanchor: "left", yref, y, yanchor: "middle", showarrow: false, font: { size: 12, color, family: tokens.font } });
  const notes = model.outliers.map((row, i) => right(`<b>${sizeText(row.free)}</b>`, i, "y2", row.severity === "crit" ? tokens.crit : row.severity === "warn" ? tokens.warn : tokens.ink));
  const [first, last] = [model.others[0], model.others.at(-1)];
  if (first) notes.push(right(sizeText(first.free), 0, "y", tokens.ink2));
  if (last && last !== first) notes.push(right(sizeText(last.free), model.others.length - 1, "y", tokens.ink2));
  if (model.others.length > 8 && model.outliers.length) notes.push(right(`${model.others.length} more`, model.others.length / 2, "y", tokens.ink2));
  return {
    ...baseLayout(tokens),
    width,
    height,
    margin: { ...MARGIN, pad: 4 },
    xaxis: { range, fixedrange: true, zeroline: false, showgrid: false, ticks: "", tickmode: "array", ...clockTicks(range[0], range[1], model.origin_ns, 8), anchor: model.others.length ? "y" : "y2" },
    yaxis: axis(model.others, every, [0, model.others.length ? split : 0.001], false),
    yaxis2: axis(model.outliers, 1, [Math.min(0.999, model.outliers.length ? 1 - sizes.outliers / sizes.total : 0.999), 1], true),
    annotations: /** @type {Partial<Plotly.Annotations>[]} */ (notes),
  };
}
