// Live memory over a recording, stacked by what the reader chose. The cursor, the pointer and the
// names of the steps are plain elements on top, as in the big figure of the overview.

import { attachPointer } from "../charts/pointer.js";
import { loadPlotly } from "../charts/plotly.js";
import { baseLayout, readTokens, STATIC } from "../charts/theme.js";
import { niceStep, sizeTicks } from "../charts/ticks.js";
import { el, fillWhenChanged } from "../dom.js";
import { count, exactBytes, GIB, MIB, sizeText } from "../format.js";
import { groupText, layerColours, layerOrder } from "./layer-colours.js";
import { placeRecordingBands } from "./recording-bands.js";
import { lastBefore, stepText } from "./recording-steps.js";

/** @typedef {import("../messages.js").RecordingTimeline} RecordingTimeline */
/** @typedef {{timeline: RecordingTimeline, range: [number, number], origin: number, limit_bytes: number | null, cursor: number | null, bands: import("./recording-bands.js").RecordingBand[]}} ChartModel */

const MARGIN = { l: 58, r: 14, t: 18, b: 28 };
/** Height of the band above the chart, where there is one. */
const BAND_PX = 24;
/** A limit so far above the data would leave nothing of them to see. */
const LIMIT_IN_SIGHT = 4;
const LEAST_NAME_PX = 96;

export class RecordingChart {
  /**
   * @param {() => ChartModel | null} build
   * @param {import("../charts/pointer.js").Gestures & {onError: (error: Error) => void}} gestures
   */
  constructor(build, gestures) {
    this.build = build;
    this.figure = el("div", { class: "figure", role: "img" });
    this.ends = el("div", { class: "step-ends" });
    this.bands = el("div", { class: "parts" });
    this.surface = el("div", { class: "surface", tabindex: 0, role: "slider", "aria-label": "Cursor over the recording" });
    this.brush = el("div", { class: "brush", hidden: true });
    this.cursor = el("div", { class: "cursor", hidden: true });
    this.cursorName = el("div", { class: "cursor-name", hidden: true }, "cursor");
    this.chip = el("div", { class: "chip", hidden: true });
    this.host = el("div", { class: "timeline recording" }, this.figure, this.ends, this.bands, this.surface, this.brush, this.cursor, this.cursorName, this.chip);
    /** @type {ChartModel | null} */
    this.model = null;
    this.top = 1;
    this.ready = false;
    this.drawing = false;
    this.dirty = false;
    this.frame = 0;
    this.detach = attachPointer(this, { ...gestures, onPoint: (x, py) => this.point(x, py) });
    this.resizes = new ResizeObserver(() => this.invalidate());
    this.resizes.observe(this.host);
    loadPlotly().then(() => {
      this.ready = true;
      this.invalidate();
    }, gestures.onError);
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.detach();
    this.resizes.disconnect();
    if (this.ready) Plotly.purge(this.figure);
    this.ready = false;
  }

  get geometry() {
    const width = Math.max(1, this.host.clientWidth - MARGIN.l - MARGIN.r);
    const top = this.marginTop;
    return { left: MARGIN.l, width, top, height: Math.max(1, this.host.clientHeight - top - MARGIN.b) };
  }

  get marginTop() {
    return MARGIN.t + (this.model?.bands.length ? BAND_PX : 0);
  }

  invalidate() {
    this.dirty = true;
    if (this.ready && !this.drawing) this.frame ||= requestAnimationFrame(() => void this.draw());
  }

  async draw() {
    this.frame = 0;
    const model = this.build();
    if (!model || !this.ready || this.drawing || this.host.clientWidth === 0) return;
    this.dirty = false;
    this.drawing = true;
    this.model = model;
    try {
      const tokens = readTokens();
      await Plotly.react(this.figure, /** @type {Plotly.Data[]} */ (this.traces(model, tokens)), this.layout(model, tokens), STATIC);
      this.placeOverlays(model);
    } finally {
      this.drawing = false;
    }
    if (this.dirty) this.invalidate();
  }

  /**
   * @param {ChartModel} model
   * @param {import("../charts/theme.js").Tokens} tokens
   */
  traces({ timeline }, tokens) {
    const { groups, bytes, by } = timeline;
    const unit = axisUnit(this.highest(timeline));
    const order = layerOrder(groups, bytes);
    const colours = layerColours(groups, order, tokens, by);
    const x = timeline.x;
    const crowded = x.length > 300;
    const traces = order.map((i) => ({
      type: "scatter", mode: "lines", stackgroup: "live", name: groups[i].label, x, y: bytes[i].map((value) => value / unit.bytes),
      line: { shape: "hv", width: crowded ? 0 : 0.8, color: tokens.panel }, fillcolor: colours[i], hoverinfo: "skip",
    }));
    const reserved = { type: "scatter", mode: "lines", name: "Reserved", x, y: timeline.reserved.map((value) => value / unit.bytes), line: { shape: "hv", width: 1.2, color: tokens.ink2 }, hoverinfo: "skip" };
    return [...traces, reserved];
  }

  /** @param {RecordingTimeline} timeline */
  highest(timeline) {
    return timeline.reserved.reduce((most, value) => Math.max(most, value), Math.max(...timeline.total));
  }

  /**
   * @param {ChartModel} model
   * @param {import("../charts/theme.js").Tokens} tokens
   * @returns {Partial<Plotly.Layout>}
   */
  layout({ timeline, range, origin, limit_bytes }, tokens) {
    const highest = this.highest(timeline);
    const unit = axisUnit(highest);
    const limit = limit_bytes !== null && limit_bytes <= LIMIT_IN_SIGHT * highest ? limit_bytes : null;
    this.top = Math.max(1, (limit ?? highest * 1.08) * 1.01);
    const shapes = limit === null ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: limit / unit.bytes, y1: limit / unit.bytes, line: { color: tokens.ink, width: 1.5 } }];
    const annotations = limit === null ? [] : [{ xref: "paper", x: 0.002, y: limit / unit.bytes, yshift: 9, xanchor: "left", text: `${sizeText(limit, 2)} limit`, showarrow: false, font: { color: tokens.ink } }];
    return /** @type {any} */ ({
      ...baseLayout(tokens),
      width: this.host.clientWidth,
      height: this.host.clientHeight,
      margin: { ...MARGIN, t: this.marginTop },
      xaxis: { range, ...placeTicks(range, origin, timeline.unit), showgrid: false, zeroline: false, linecolor: tokens.line, ticks: "", fixedrange: true },
      yaxis: { range: [0, this.top / unit.bytes], ...sizeTicks(this.top / unit.bytes, unit.name, 5), gridcolor: tokens.line, zeroline: false, fixedrange: true },
      shapes,
      annotations,
    });
  }

  /** @param {ChartModel} model */
  placeOverlays(model) {
    const { left, top, width, height } = this.geometry;
    Object.assign(this.surface.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    const { timeline, range } = model;
    const seen = timeline.steps.filter((step) => step.x >= range[0] && step.x <= range[1]);
    let named = -Infinity;
    const failed = timeline.ooms.filter((oom) => oom.x >= range[0] && oom.x <= range[1]).slice(0, 20).map((oom) => {
      const px = this.toPixel(oom.x);
      const line = el("div", { class: "step-end oom" }, el("span", {}, `✕ out of memory, asked for ${sizeText(oom.size)}`));
      Object.assign(line.style, { left: `${px}px`, top: `${top}px`, height: `${height}px` });
      line.classList.toggle("left", px > left + width / 2);
      return line;
    });
    this.ends.replaceChildren(...failed, ...(seen.length > 60 ? [] : seen).map((step) => {
      const px = this.toPixel(step.x);
      const room = LEAST_NAME_PX * (step.step === null ? 1.5 : 1);
      const hasName = px - named > room && px < left + width - room;
      if (hasName) named = px;
      const line = el("div", { class: "step-end" }, hasName ? el("span", {}, `${stepText(step)} ends`) : null);
      Object.assign(line.style, { left: `${px}px`, top: `${top}px`, height: `${height}px` });
      return line;
    }));
    this.drawBands(model);
    this.showCursor(model.cursor);
    const index = model.cursor === null ? -1 : lastBefore(timeline.x, model.cursor);
    this.figure.setAttribute("aria-label", chartSummary(model));
    this.surface.setAttribute("aria-valuemin", "0");
    this.surface.setAttribute("aria-valuemax", String(timeline.x.length - 1));
    this.surface.setAttribute("aria-valuenow", String(Math.max(0, index)));
    this.surface.setAttribute("aria-valuetext", index < 0 ? "not set" : `${placeText(timeline.x[index], model.origin, timeline.unit)}, ${sizeText(timeline.total[index], 2)} live`);
  }

  /** @param {ChartModel} model */
  drawBands({ bands, range }) {
    const placed = placeRecordingBands(bands, this.geometry, range);
    fillWhenChanged(this.bands, JSON.stringify(placed), () => placed.map((one) => {
      const box = el("div", { class: "step-part", title: one.title }, one.label);
      Object.assign(box.style, { left: `${one.left}px`, width: `${one.width}px`, top: "2px", height: `${BAND_PX - 6}px` });
      return box;
    }));
  }

  /** @param {number | null} x */
  showCursor(x) {
    const { left, top, width, height } = this.geometry;
    const { model } = this;
    const hidden = x === null || !model || x < model.range[0] || x > model.range[1];
    this.cursor.hidden = this.cursorName.hidden = hidden;
    if (hidden || x === null) return;
    const px = this.toPixel(x);
    Object.assign(this.cursor.style, { left: `${px}px`, top: `${top - 4}px`, height: `${height + 4}px` });
    const isRight = px > left + width - 60;
    Object.assign(this.cursorName.style, { left: isRight ? "" : `${px + 5}px`, right: isRight ? `${this.host.clientWidth - px + 5}px` : "", top: `${top - MARGIN.t}px` });
  }

  /** @param {number} x */
  toPixel(x) {
    const { left, width } = this.geometry;
    const [from, to] = this.model?.range ?? [0, 1];
    return left + ((x - from) / Math.max(to - from, 1e-9)) * width;
  }

  /** @param {number} px */
  xAt(px) {
    const { left, width } = this.geometry;
    const [from, to] = this.model?.range ?? [0, 1];
    return from + (Math.min(Math.max(px - left, 0), width) / width) * (to - from);
  }

  /**
   * What is under the pointer: the layer, exact.
   * @param {number | null} x
   * @param {number | null} py
   */
  point(x, py) {
    const { model } = this;
    this.chip.hidden = x === null || !model || model.timeline.x.length === 0;
    if (x === null || !model || this.chip.hidden) return;
    const { timeline } = model;
    const { top, height, left, width } = this.geometry;
    const index = lastBefore(timeline.x, x);
    const height_bytes = (1 - ((py ?? top) - top) / height) * this.top;
    let below = 0;
    let name = "";
    let held = 0;
    for (const i of layerOrder(timeline.groups, timeline.bytes)) {
      held = timeline.bytes[i][index];
      if (height_bytes < below + held) {
        name = groupText(timeline.groups[i], timeline.by);
        break;
      }
      below += held;
    }
    this.chip.replaceChildren(...(name ? [`${name} · ${sizeText(held, 2)}`, el("small", {}, exactBytes(held))] : [`${sizeText(timeline.total[index], 2)} live`, el("small", {}, `${sizeText(timeline.reserved[index], 2)} reserved`)]));
    const px = this.toPixel(x);
    const own = this.chip.offsetWidth;
    this.chip.style.left = `${px + 10 + own <= left + width ? px + 10 : px - 10 - own}px`;
    this.chip.style.top = `${Math.max(top, (py ?? top) - 40)}px`;
  }
}

/**
 * Few ticks, round in the unit that a person would say the highest of them in.
 * @param {number} highest_bytes
 */
function axisUnit(highest_bytes) {
  return highest_bytes >= GIB ? { name: "GiB", bytes: GIB } : { name: "MiB", bytes: MIB };
}

/**
 * @param {number} x
 * @param {number} origin
 * @param {"us" | "entry"} unit
 */
export function placeText(x, origin, unit) {
  if (unit === "entry") return `event ${count(x)}`;
  const ms = (x - origin) / 1000;
  return Math.abs(ms) < 10_000 ? `${ms.toLocaleString("en-US", { maximumFractionDigits: Math.abs(ms) < 100 ? 1 : 0 })} ms` : `${(ms / 1000).toLocaleString("en-US", { maximumFractionDigits: 1 })} s`;
}

/**
 * @param {[number, number]} range
 * @param {number} origin
 * @param {"us" | "entry"} unit
 */
export function placeTicks([from, to], origin, unit) {
  const scale = unit === "entry" ? 1 : to - from > 10_000_000 ? 1_000_000 : 1000;
  const name = unit === "entry" ? "" : scale === 1000 ? " ms" : " s";
  const step = niceStep(Math.max((to - from) / scale / 7, 1e-6));
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const tickvals = [];
  const ticktext = [];
  const zero = unit === "entry" ? 0 : origin;
  for (let i = Math.ceil((from - zero) / scale / step); i * step <= (to - zero) / scale; i++) {
    tickvals.push(zero + i * step * scale);
    ticktext.push(`${(i * step).toLocaleString("en-US", { maximumFractionDigits: digits })}${name}`);
  }
  return { tickvals, ticktext };
}

/** @param {ChartModel} model */
function chartSummary({ timeline, range, origin }) {
  if (timeline.total.length === 0) return "Live memory of a recording; it is empty.";
  const highest = Math.max(...timeline.total);
  const at = timeline.x[timeline.total.indexOf(highest)];
  const span = timeline.unit === "us" ? `${((range[1] - range[0]) / 1000).toFixed(1)} ms` : `${count(range[1] - range[0])} events`;
  return `Live memory over ${span}, highest ${sizeText(highest, 2)} at ${placeText(at, origin, timeline.unit)}; largest layers: ${timeline.groups.slice(0, 3).map((group) => groupText(group, timeline.by)).join("; ")}. The table beside it holds the values at the cursor.`;
}
