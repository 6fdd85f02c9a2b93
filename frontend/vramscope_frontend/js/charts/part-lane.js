// The band over the chart when a few steps are seen from near: forward, backward, optimizer, and how
// high the step was in the part that held its peak.

import { el, fillWhenChanged } from "../dom.js";
import { duration, sizeText } from "../format.js";
import { PARTS_PX, toPixel } from "./geometry.js";

/** @typedef {import("./geometry.js").Geometry} Geometry */
/** @typedef {import("./timeline.js").TimelineModel} TimelineModel */
/** @typedef {{left: number, width: number, label: string, title: string, peak: {top: number, text: string} | null}} PlacedPart */

/** Of 12 px text, on the wide side. */
const CHARACTER_PX = 6.6;
const PADDING_PX = 8;

/**
 * @param {Pick<TimelineModel, "parts" | "range" | "limit" | "highest" | "floor">} model
 * @param {Geometry} geometry
 * @returns {PlacedPart[]}
 */
export function placePartBands({ parts, range, limit, highest, floor }, geometry) {
  const right = geometry.left + geometry.width;
  const shown = ((limit?.bytes ?? highest * 1.1) - floor) * 1.01;
  return parts.flatMap((part) => {
    const from = Math.max(geometry.left, toPixel(geometry, range, part.x0));
    const width = Math.min(right, toPixel(geometry, range, part.x1)) - from;
    if (width < 1) return [];
    const fits = (/** @type {string} */ text) => text.length * CHARACTER_PX + PADDING_PX <= width;
    const time = duration(part.time_s);
    const label = [`${part.name} ${time}`, part.name].find(fits) ?? "";
    const top = geometry.mainTop + geometry.mainHeight * (1 - ((part.peak ?? 0) - floor) / shown);
    const peak = part.peak !== null && part.peak > floor ? { top, text: [`${sizeText(part.peak)} peak of the step`, sizeText(part.peak)].find(fits) ?? "" } : null;
    return [{ left: from, width, label, title: `${part.name}, ${time}\n${part.title}`, peak }];
  });
}

/**
 * @param {HTMLElement} host
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 */
export function drawParts(host, model, geometry) {
  const placed = placePartBands(model, geometry);
  fillWhenChanged(host, JSON.stringify([placed.map((one) => [Math.round(one.left), Math.round(one.width), one.label, one.peak && [Math.round(one.peak.top), one.peak.text]]), geometry.mainHeight]), () =>
    placed.flatMap((one) => {
      const box = el("div", { class: "step-part", title: one.title }, one.label);
      Object.assign(box.style, { left: `${one.left}px`, width: `${one.width - 1}px`, top: "2px", height: `${PARTS_PX - 6}px` });
      const edge = el("div", { class: "step-part-edge" });
      Object.assign(edge.style, { left: `${one.left}px`, top: `${geometry.mainTop}px`, height: `${geometry.mainHeight}px` });
      if (!one.peak) return [box, edge];
      const peak = el("div", { class: "step-part-peak" }, el("span", {}, one.peak.text));
      Object.assign(peak.style, { left: `${one.left}px`, width: `${one.width}px`, top: `${one.peak.top}px` });
      return [box, edge, peak];
    }));
}
