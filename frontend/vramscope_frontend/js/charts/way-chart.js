// The peak of each step on the way to running out of memory: allocated and reserved to the limit,
// flushes of the cache below.

import { el } from "../dom.js";
import { count, sizeText, tableUnit } from "../format.js";
import { loadPlotly } from "./plotly.js";
import { baseLayout, faded, readTokens, STATIC } from "./theme.js";
import { sizeTicks, stepTicks, stripTop } from "./ticks.js";

/** @typedef {import("../oom/way-there.js").Way} Way */

const HEIGHT = 430;
const LOWER = /** @type {[number, number]} */ ([0, 0.14]);
const UPPER = /** @type {[number, number]} */ ([0.27, 1]);

export class WayChart {
  /** @param {(error: Error) => void} onError */
  constructor(onError) {
    this.figure = el("div", { class: "figure", role: "img" });
    this.element = el("div", { class: "way-chart" }, this.figure);
    /** @type {{way: Way, limit_bytes: number | null} | null} */
    this.shown = null;
    this.ready = false;
    this.resizes = new ResizeObserver(() => this.draw());
    this.resizes.observe(this.element);
    loadPlotly().then(() => {
      this.ready = true;
      this.draw();
    }, onError);
  }

  close() {
    this.resizes.disconnect();
    if (this.ready) Plotly.purge(this.figure);
    this.ready = false;
  }

  /**
   * @param {Way} way
   * @param {number | null} limit_bytes
   */
  show(way, limit_bytes) {
    this.shown = { way, limit_bytes };
    const last = way.x.length - 1;
    this.figure.setAttribute("aria-label", `${way.bySteps ? `Peaks of ${count(way.x.length)} steps` : "The last minute"}: allocated from ${sizeText(way.allocated[0])} to ${sizeText(way.allocated[last])}, reserved from ${sizeText(way.reserved[0])} to ${sizeText(way.reserved[last])}${limit_bytes ? `, of ${sizeText(limit_bytes)}` : ""}; the cache was flushed ${count(way.retries.y.reduce((a, b) => a + b, 0))} times.`);
    this.draw();
  }

  draw() {
    if (!this.ready || !this.shown || this.element.clientWidth === 0) return;
    const tokens = readTokens();
    const { way, limit_bytes } = this.shown;
    void Plotly.react(this.figure, /** @type {Plotly.Data[]} */ (tracesOf(tokens, way, limit_bytes)), layoutOf(tokens, way, limit_bytes, this.element.clientWidth), STATIC);
  }
}

/**
 * @param {Way} way
 * @param {number | null} limit_bytes
 */
const unitOf = (way, limit_bytes) => tableUnit(limit_bytes ?? way.highest);

/**
 * @param {import("./theme.js").Tokens} tokens
 * @param {Way} way
 * @param {number | null} limit_bytes
 * @returns {Partial<Plotly.PlotData>[]}
 */
function tracesOf(tokens, way, limit_bytes) {
  const unit = unitOf(way, limit_bytes);
  const closed = (/** @type {number[]} */ values) => [...values, values.at(-1) ?? NaN].map((value) => value / unit.bytes);
  // A step function has no width at its last row.
  const x = [...way.x, way.end];
  const area = { type: /** @type {const} */ ("scatter"), mode: /** @type {const} */ ("lines"), x, hoverinfo: /** @type {const} */ ("skip") };
  const width = way.bySteps ? 0.6 : 0.8;
  return [
    { ...area, name: "allocated", y: closed(way.allocated), line: { width: 1.2, color: tokens.category.activations, shape: "hv" }, fill: "tozeroy", fillcolor: faded(tokens.category.activations, 0.45) },
    { ...area, name: "reserved", y: closed(way.reserved), line: { width: 1.2, color: tokens.ink2, shape: "hv" }, fill: "tonexty", fillcolor: faded(tokens.category.stranded, 0.34) },
    { name: "flushes", type: "bar", x: way.retries.x, y: way.retries.y, width: way.retries.x.map(() => Math.max(width, (way.end - (way.x[0] ?? 0)) / 200)), yaxis: "y2", marker: { color: tokens.warnFill, line: { width: 0 } }, hoverinfo: "skip" },
  ];
}

/**
 * @param {import("./theme.js").Tokens} tokens
 * @param {Way} way
 * @param {number | null} limit_bytes
 * @param {number} width
 * @returns {Partial<Plotly.Layout>}
 */
function layoutOf(tokens, way, limit_bytes, width) {
  const unit = unitOf(way, limit_bytes);
  const top = (limit_bytes ?? way.highest * 1.1) / unit.bytes || 1;
  const hasRetries = way.retries.x.length > 0;
  const foot = hasRetries ? UPPER[0] : 0;
  const first = way.x[0] ?? 0;
  const range = [first, way.end + Math.max(0.02 * (way.end - first), way.bySteps ? 0.3 : 0.5)];
  const axis = { fixedrange: true, zeroline: false, showgrid: false, ticks: /** @type {const} */ ("") };
  const most = stripTop(Math.max(1, ...way.retries.y));
  const label = { showarrow: false, borderpad: 0, font: { size: 12, color: tokens.ink, family: tokens.font } };
  const x_ticks = way.bySteps ? stepTicks(range[0], range[1]) : { tickvals: [-60, -45, -30, -15, 0], ticktext: ["−60 s", "−45", "−30", "−15", "0"] };
  return {
    ...baseLayout(tokens), width, height: hasRetries ? HEIGHT : HEIGHT - 100, margin: { l: 58, r: 14, t: 24, b: 28, pad: 0 },
    xaxis: { ...axis, range, anchor: "free", position: 0, tickmode: "array", ...x_ticks },
    yaxis: { ...axis, domain: [foot, 1], range: [0, top * 1.03], tickmode: "array", ...sizeTicks(top, unit.name), showgrid: true, gridcolor: tokens.line },
    yaxis2: { ...axis, domain: LOWER, range: [0, most * 1.1], tickmode: "array", tickvals: [0, most], ticktext: ["0", String(most)], showgrid: true, gridcolor: tokens.line, anchor: "x", visible: hasRetries },
    shapes: [
      { type: "line", xref: "paper", x0: 0, x1: 1, yref: "y", y0: top, y1: top, line: { width: 1.5, color: tokens.ink } },
      { type: "line", xref: "x", x0: way.end, x1: way.end, yref: "paper", y0: 0, y1: 1, line: { width: 2, color: tokens.crit } },
    ],
    annotations: [
      { ...label, text: "<b>out of memory</b>", xref: "x", x: way.end, xanchor: "right", xshift: -4, yref: "paper", y: 1, yanchor: "bottom", yshift: 2, font: { ...label.font, color: tokens.crit } },
      { ...label, text: `<b>${sizeText(limit_bytes ?? way.highest)}</b>`, xref: "paper", x: 0, xanchor: "left", xshift: 2, yref: "y", y: top, yanchor: "bottom", yshift: 1, font: { ...label.font, color: tokens.ink } },
      ...areaLabels(way, unit, top, label),
      ...(hasRetries ? [{ ...label, text: "cache flushed to make room, times per step", xref: /** @type {const} */ ("paper"), x: 0, xanchor: /** @type {const} */ ("left"), xshift: 6, yref: /** @type {const} */ ("paper"), y: LOWER[1], yanchor: /** @type {const} */ ("bottom"), yshift: 3 }] : []),
    ],
  };
}

/**
 * What the areas are, written where they have room for it.
 * @param {Way} way
 * @param {{bytes: number}} unit
 * @param {number} top
 * @param {Partial<Plotly.Annotations>} label
 * @returns {Partial<Plotly.Annotations>[]}
 */
function areaLabels(way, unit, top, label) {
  const at = Math.floor(way.x.length * 0.6);
  const [allocated, reserved] = [way.allocated[at] / unit.bytes, way.reserved[at] / unit.bytes];
  const place = { xref: /** @type {const} */ ("x"), x: way.x[at], yref: /** @type {const} */ ("y") };
  return [
    ...(allocated > 0.12 * top ? [{ ...label, ...place, text: "allocated at the peak", y: allocated / 2 }] : []),
    ...(reserved - allocated > 0.09 * top ? [{ ...label, ...place, text: "reserved", y: (reserved + allocated) / 2 }] : []),
  ];
}
