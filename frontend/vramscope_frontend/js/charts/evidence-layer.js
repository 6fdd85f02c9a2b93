// Draws a finding's evidence over the chart, as plain elements: a redraw costs next to nothing.

import { el, fillWhenChanged, setAttribute, svg } from "../dom.js";
import { placeLabels, scaleOf, wedgePoints } from "./evidence-places.js";
import { toPixel } from "./geometry.js";

/** @typedef {import("./geometry.js").Geometry} Geometry */
/** @typedef {import("./timeline.js").TimelineModel} TimelineModel */

export class EvidenceLayer {
  constructor() {
    /** Below the figure, which has no ground of its own. */
    this.ground = el("div", { class: "forecast-ground", hidden: true }, el("span", {}, "forecast"));
    this.element = el("div", { class: "evidence" });
  }

  /**
   * @param {TimelineModel} model
   * @param {Geometry} geometry
   */
  draw(model, geometry) {
    setAttribute(this.element, "data-severity", model.evidence?.severity ?? null);
    const wedge = wedgePoints(model, geometry);
    this.ground.hidden = wedge === null;
    if (wedge) Object.assign(this.ground.style, { left: `${wedge.from}px`, width: `${Math.max(0, wedge.right - wedge.from)}px`, top: `${geometry.mainTop}px`, height: `${geometry.mainHeight}px` });
    const labels = placeLabels(model, geometry);
    const onset = onsetLine(model, geometry);
    const round = (/** @type {number} */ value) => Math.round(value * 2) / 2;
    const key = JSON.stringify([wedge?.points.map((point) => point.map(round)), labels, onset, geometry.mainHeight, geometry.width], (_, value) => (typeof value === "number" ? round(value) : value));
    fillWhenChanged(this.element, key, () => [this.drawing(geometry, wedge, labels, onset), ...labels.map(labelElement)]);
  }

  /**
   * @param {Geometry} geometry
   * @param {ReturnType<typeof wedgePoints>} wedge
   * @param {import("./evidence-places.js").Label[]} labels
   * @param {{x: number, y0: number, y1: number} | null} onset
   */
  drawing(geometry, wedge, labels, onset) {
    const drawing = svg("svg", { "aria-hidden": "true", width: geometry.width, height: geometry.mainHeight + geometry.mainTop });
    Object.assign(drawing.style, { left: `${geometry.left}px` });
    const x = (/** @type {number} */ px) => (px - geometry.left).toFixed(1);
    if (wedge) {
      const [a, b, c] = wedge.points.map(([px, py]) => `${x(px)} ${py.toFixed(1)}`);
      drawing.append(svg("path", { class: "wedge", d: `M${a}L${b}L${c}Z` }), svg("path", { class: "wedge-edge", d: `M${a}L${b}M${a}L${c}` }));
    }
    if (onset) drawing.append(svg("path", { class: "onset", d: `M${x(onset.x)} ${onset.y0.toFixed(1)}V${onset.y1.toFixed(1)}` }));
    for (const { leader } of labels) if (leader && leader.y1 > leader.y0) drawing.append(svg("path", { class: "leader", d: `M${x(leader.x)} ${leader.y0.toFixed(1)}V${leader.y1.toFixed(1)}` }));
    return drawing;
  }

  /** Where "Evidence" leads: once, and not for who asked for stillness. */
  pulse() {
    this.element.classList.remove("pulse");
    requestAnimationFrame(() => this.element.classList.add("pulse"));
  }
}

/**
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 */
function onsetLine(model, geometry) {
  const onset = model.evidence?.onset ?? null;
  if (onset === null || onset < model.range[0] || onset > model.range[1]) return null;
  return { x: toPixel(geometry, model.range, onset), y0: scaleOf(model, geometry).limitY + 4, y1: geometry.mainTop + geometry.mainHeight };
}

/** @param {import("./evidence-places.js").Label} label */
function labelElement({ kind, box, lines }) {
  const element = el("div", { class: "evidence-label", "data-kind": kind }, ...lines.map((line, i) => el(i === 0 && kind !== "onset" ? "b" : "span", {}, line)));
  Object.assign(element.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${Math.ceil(box.width)}px` });
  return element;
}
