// What the colours, hatches and outlines of the map mean: those that are in it.

import { readTokens } from "../charts/theme.js";
import { el } from "../dom.js";
import { fillOf } from "./painter.js";

/** @typedef {import("./map-state.js").Segment} Segment */
/** @typedef {import("./paints.js").Paint} Paint */

const SIDE = 12;

/**
 * @param {Paint[]} paints
 * @param {Segment[]} segments
 * @param {number} mainStream
 */
export function legendOf(paints, segments, mainStream) {
  const edges = /** @type {[boolean, string, string][]} */ ([
    [segments.some((one) => one.isExpandable), "expandable", "Expandable segment"],
    [segments.some((one) => one.isPrivate), "private", "Private pool"],
    [segments.some((one) => one.stream !== mainStream), "stream", "Another stream"],
  ]).filter(([is]) => is);
  return {
    key: [document.documentElement.dataset.theme, ...paints.map((paint) => paint.name), ...edges.map(([, edge]) => edge)].join("/"),
    build: () => [...paints.map((paint) => el("span", {}, swatch(paint), paint.name)), ...edges.map(([, edge, text]) => el("span", {}, el("i", { class: "swatch edge", "data-edge": edge }), text))],
  };
}

/** @param {Paint} paint */
function swatch(paint) {
  const dpr = Math.min(2, window.devicePixelRatio || 1);
  const canvas = el("canvas", { class: "swatch", width: SIDE * dpr, height: SIDE * dpr, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  if (context) {
    context.scale(dpr, dpr);
    context.fillStyle = fillOf(context, paint, readTokens(), dpr);
    context.fillRect(0, 0, SIDE, SIDE);
  }
  return canvas;
}
