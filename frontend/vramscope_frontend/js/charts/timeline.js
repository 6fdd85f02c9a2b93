// The one big figure. It draws when something changed, at most four times a second, less often when
// a redraw is expensive, never in a hidden tab; cursor, brush, marks and gaps are plain elements on
// top, so that the pointer never waits for a redraw.

import { el, fillWhenChanged } from "../dom.js";
import { reducedMotion } from "../settings.js";
import { EvidenceLayer } from "./evidence-layer.js";
import { geometryOf, hasStrips, toPixel, toX } from "./geometry.js";
import { drawBands, drawCuts, placeBands } from "./lane.js";
import { drawParts } from "./part-lane.js";
import { loadPlotly } from "./plotly.js";
import { attachPointer } from "./pointer.js";
import { readTokens, STATIC } from "./theme.js";
import { timelineLayout } from "./timeline-layout.js";
import { timelineTraces } from "./timeline-traces.js";

/** @typedef {import("../composition.js").LayerId} LayerId */
/** @typedef {import("../composition.js").Composition} Composition */
/** @typedef {{id: string, name: string, values: number[], ink: "ink" | "ink2" | "ink3", width: number, dash: "solid" | "dot" | "dash"}} Line */
/** @typedef {{least: number[], median: number[], most: number[], worst: number[], worstRank: number, severity?: import("../glyphs.js").Severity}} Envelope `severity`: of what is found on the worst */
/** @typedef {{x: number, kind: string, glyph: string, title: string}} Mark */
/** @typedef {{x0: number, x1: number, text: string, quiet: boolean}} Zone */
/** A place where the rank went on as another process. @typedef {{x: number, text: string}} Cut */

/**
 * What one redraw shows. Values are bytes; unknown is NaN.
 * @typedef {object} TimelineModel
 * @property {"step" | "time"} xKind
 * @property {[number, number]} range
 * @property {number} origin_ns
 * @property {{name: string, bytes: number}} unit
 * @property {{bytes: number, label: string, dashed: boolean} | null} limit
 * @property {number} highest
 * @property {number} floor bytes at which the vertical axis begins
 * @property {number[]} x
 * @property {Partial<Record<LayerId, number[]>> | null} layers
 * @property {Line[] | null} lines
 * @property {Envelope | null} envelope
 * @property {{end: Composition, peak: Composition} | null} columns
 * @property {{stepTime: {x: number[], y: number[]} | null, allocations: {x: number[], y: number[], width: number} | null}} strips
 * @property {{value: string, unit: string} | null} freeText
 * @property {import("../numbering.js").Stretch[]} numbering what steps are called along the axis
 * @property {import("../phases.js").Band[]} bands
 * @property {import("../within-steps.js").PartBand[]} parts of the steps shown, where these are few
 * @property {Cut[]} cuts
 * @property {Mark[]} marks
 * @property {Zone[]} zones
 * @property {boolean} emulated
 * @property {boolean} dimmed
 * @property {import("../findings/growth-evidence.js").Evidence | null} evidence of the finding that is drawn
 * @property {import("./theme.js").Accused | null} accused
 * @property {number[]} tops bytes used at each x: what labels must not lie on
 */

const FASTEST_MS = 250;
const REDUCED_MS = 2000;
/** A redraw may take this share of the main thread. */
const SHARE = 0.2;

export class Timeline {
  /**
   * @param {HTMLElement} host
   * @param {() => TimelineModel | null} build
   * @param {import("./pointer.js").Gestures & {onMark: (x: number) => void, onError: (error: Error) => void}} gestures
   */
  constructor(host, build, gestures) {
    this.host = host;
    this.build = build;
    this.gestures = gestures;
    this.figure = el("div", { class: "figure", role: "img" });
    this.zones = el("div", {});
    this.cursor = el("div", { class: "cursor", hidden: true });
    this.chip = el("div", { class: "chip", hidden: true });
    this.brush = el("div", { class: "brush", hidden: true });
    this.surface = el("div", { class: "surface", tabindex: 0, role: "slider", "aria-label": "Cursor of the memory chart" });
    this.marks = el("div", { class: "marks" });
    this.bands = el("div", { class: "bands" });
    this.cuts = el("div", {});
    this.parts = el("div", { class: "parts" });
    this.evidence = new EvidenceLayer();
    host.classList.add("timeline");
    host.replaceChildren(this.evidence.ground, this.figure, this.zones, this.cuts, this.parts, this.evidence.element, this.surface, this.brush, this.cursor, this.chip, this.bands, this.marks);
    /** @type {TimelineModel | null} */
    this.model = null;
    this.tokens = readTokens();
    this.ready = false;
    this.drawing = false;
    this.dirty = false;
    this.timer = 0;
    this.cost_ms = 0;
    this.drawn_ms = -Infinity;
    this.redraws = 0;
    this.detachPointer = attachPointer(this, gestures);
    this.onVisible = () => this.invalidate();
    document.addEventListener("visibilitychange", this.onVisible);
    this.resizes = new ResizeObserver(() => this.invalidate(true));
    this.resizes.observe(host);
    loadPlotly().then(
      () => {
        this.ready = true;
        this.invalidate(true);
      },
      (error) => this.gestures.onError(error),
    );
  }

  close() {
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onVisible);
    this.resizes.disconnect();
    this.detachPointer();
    if (this.ready) Plotly.purge(this.figure);
    this.ready = false;
  }

  get geometry() {
    const { model } = this;
    return geometryOf(this.host.clientWidth, this.host.clientHeight, model?.columns !== null, hasStrips(model), (model?.parts.length ?? 0) > 0);
  }

  themeChanged() {
    this.tokens = readTokens();
    this.invalidate(true);
  }

  /**
   * Something changed. `urgent` is for the reader's own actions, which do not wait for their turn.
   * @param {boolean} [urgent]
   */
  invalidate(urgent = false) {
    this.dirty = true;
    if (!this.ready || document.hidden || this.drawing) return;
    const wait_ms = urgent ? 0 : Math.max(0, this.drawn_ms + this.interval_ms - performance.now());
    if (this.timer && !urgent) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => requestAnimationFrame(() => void this.draw()), wait_ms);
  }

  get interval_ms() {
    return Math.max(reducedMotion() ? REDUCED_MS : FASTEST_MS, this.cost_ms / SHARE);
  }

  async draw() {
    this.timer = 0;
    if (!this.ready || !this.dirty || this.drawing || this.host.clientWidth === 0) return;
    const model = this.build();
    if (!model) return;
    this.dirty = false;
    this.drawing = true;
    this.model = model;
    const start_ms = performance.now();
    try {
      await Plotly.react(this.figure, /** @type {Plotly.Data[]} */ (timelineTraces(this.tokens, model)), timelineLayout(this.tokens, model, this.host.clientWidth, this.host.clientHeight), STATIC);
      this.placeOverlays(model);
    } finally {
      this.drawing = false;
    }
    // Smoothed: one slow redraw (a garbage collection, a busy machine) must not slow the next ones.
    this.cost_ms = 0.7 * this.cost_ms + 0.3 * (performance.now() - start_ms);
    this.drawn_ms = performance.now();
    this.redraws++;
    if (this.dirty) this.invalidate();
  }

  /** @param {TimelineModel} model */
  placeOverlays(model) {
    const geometry = this.geometry;
    position(this.surface, geometry.left, geometry.top, geometry.width, geometry.height);
    this.marks.style.top = `${geometry.marksTop + 2}px`;
    const visible = model.marks.filter((mark) => mark.x >= model.range[0] && mark.x <= model.range[1]);
    const grouped = groupMarks(visible.map((mark) => ({ ...mark, px: toPixel(geometry, model.range, mark.x) })));
    fillWhenChanged(this.marks, JSON.stringify(grouped.map(({ px, glyph, title }) => [Math.round(px), glyph, title])), () =>
      grouped.map((mark) => {
        const button = el("button", { class: "mark", type: "button", "data-kind": mark.kind, title: mark.title, "aria-label": mark.title, click: () => this.gestures.onMark(mark.x) }, mark.glyph);
        button.style.left = `${mark.px}px`;
        return button;
      }));
    this.bands.style.top = `${geometry.marksTop + 2}px`;
    drawBands(this.bands, placeBands(model.bands, geometry, model.range, grouped.map((mark) => mark.px)));
    drawParts(this.parts, model, geometry);
    drawCuts(this.cuts, model.cuts, geometry, model.range);
    this.evidence.draw(model, geometry);
    this.zones.replaceChildren(...model.zones.map((zone) => this.zoneElement(zone, model, geometry)));
    this.surface.setAttribute("aria-valuemin", String(Math.round(model.range[0])));
    this.surface.setAttribute("aria-valuemax", String(Math.round(model.range[1])));
  }

  /**
   * @param {Zone} zone
   * @param {TimelineModel} model
   * @param {import("./geometry.js").Geometry} geometry
   */
  zoneElement(zone, model, geometry) {
    const from = Math.max(geometry.left, toPixel(geometry, model.range, zone.x0));
    const to = Math.min(geometry.left + geometry.width, toPixel(geometry, model.range, zone.x1));
    const element = el("div", { class: zone.quiet ? "gap quiet" : "gap", title: zone.text }, to - from > 46 ? el("span", {}, zone.text) : null);
    // Below the limit line, which holds whatever is missing: y ends one percent above it.
    const top = geometry.mainHeight * 0.01 + 1;
    position(element, from, geometry.mainTop + top, Math.max(0, to - from), geometry.mainHeight - top);
    element.hidden = to - from < 1;
    return element;
  }

  /**
   * @param {number} px position within the host
   */
  xAt(px) {
    return this.model ? toX(this.geometry, this.model.range, px) : NaN;
  }

  /**
   * Where in the main plot a height lies, in bytes.
   * @param {number} py
   */
  bytesAt(py) {
    if (!this.model) return NaN;
    const geometry = this.geometry;
    const { floor } = this.model;
    const shown = ((this.model.limit?.bytes ?? this.model.highest * 1.1) - floor) * 1.01;
    return floor + (1 - (py - geometry.mainTop) / geometry.mainHeight) * shown;
  }

  /**
   * @param {number | null} x
   * @param {Node[]} chip
   * @param {number | null} py where the chip goes; the upper third without a pointer
   */
  showCursor(x, chip, py) {
    const model = this.model;
    const hidden = x === null || !model || x < model.range[0] || x > model.range[1];
    this.cursor.hidden = hidden;
    this.chip.hidden = hidden || chip.length === 0;
    if (hidden || !model || x === null) return;
    const geometry = this.geometry;
    const px = toPixel(geometry, model.range, x);
    position(this.cursor, px, geometry.top - 4, 2, geometry.height + 4);
    this.chip.replaceChildren(...chip);
    const width = this.chip.offsetWidth;
    const right = geometry.left + geometry.width;
    const left = px - 8 - width;
    // Beside the cursor, on the right, on the left, or as far to the right as there is room.
    this.chip.style.left = `${px + 8 + width <= right ? px + 8 : left >= geometry.left ? left : right - width}px`;
    this.chip.style.top = `${Math.min(geometry.mainTop + geometry.mainHeight - 44, Math.max(geometry.mainTop + 4, (py ?? geometry.mainTop + geometry.mainHeight / 3) - 44))}px`;
  }
}

/**
 * @param {HTMLElement} element
 * @param {number} left
 * @param {number} top
 * @param {number} width
 * @param {number} height
 */
function position(element, left, top, width, height) {
  Object.assign(element.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px`, bottom: "auto" });
}

/**
 * Marks that would overlap become one with a count.
 * @param {(Mark & {px: number})[]} marks
 */
export function groupMarks(marks) {
  /** @type {(Mark & {px: number, many: number})[]} */
  const groups = [];
  for (const mark of [...marks].sort((a, b) => a.px - b.px)) {
    const last = groups[groups.length - 1];
    if (last && mark.px - last.px < 24) {
      last.many++;
      last.glyph = `${last.many}\u00d7`;
      last.title = `${last.title}\n${mark.title}`;
    } else groups.push({ ...mark, many: 1 });
  }
  return groups;
}
