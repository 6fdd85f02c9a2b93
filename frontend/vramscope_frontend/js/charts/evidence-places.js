// Where a finding's evidence goes in the chart: onset, slope, forecast. Labels lie above the data,
// never on it nor on the limit's own label; where two would overlap the less important one is left
// out (forecast before slope before onset). Pure.

import { toPixel } from "./geometry.js";

/** @typedef {import("./geometry.js").Geometry} Geometry */
/** @typedef {import("./timeline.js").TimelineModel} TimelineModel */
/** @typedef {{left: number, top: number, width: number, height: number}} Box */
/** @typedef {{kind: "forecast" | "slope" | "onset", box: Box, lines: string[], leader: {x: number, y0: number, y1: number} | null}} Label */

/** Of 12 px text, on the wide side. */
const CHARACTER_PX = 6.8;
const LINE_PX = 16;
const GAP_PX = 6;
/** The limit's own label stands above its line, at the left. */
const LIMIT_LABEL_PX = 18;

/**
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 */
export function scaleOf(model, geometry) {
  const top_bytes = model.limit?.bytes ?? model.highest * 1.1;
  const shown = (top_bytes - model.floor) * 1.01;
  return {
    limitY: geometry.mainTop + geometry.mainHeight * (1 - (top_bytes - model.floor) / shown),
    yOf: (/** @type {number} */ bytes) => geometry.mainTop + geometry.mainHeight * (1 - Math.min(1.005, Math.max(0, (bytes - model.floor) / shown))),
  };
}

/**
 * The wedge from the last peak to the limit, at the early and at the late end.
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 * @returns {{points: [number, number][], from: number, right: number} | null}
 */
export function wedgePoints(model, geometry) {
  const { evidence, range } = model;
  const last = lastTop(model);
  if (!evidence?.wedge || !last || last.x >= range[1]) return null;
  const { limitY, yOf } = scaleOf(model, geometry);
  const to = evidence.wedge.limit_bytes ? Math.max(limitY, yOf(evidence.wedge.limit_bytes)) : limitY;
  const px = (/** @type {number} */ x) => toPixel(geometry, range, x);
  const from = px(last.x);
  return { points: [[from, yOf(last.bytes)], [px(evidence.wedge.early), to], [px(evidence.wedge.late), to]], from, right: geometry.left + geometry.width };
}

/** An evaluation, or a bin that has only begun, must not be where a forecast starts. */
const LAST_PEAKS = 3;

/**
 * The last peak, at the end of what is drawn.
 * @param {TimelineModel} model
 */
function lastTop({ x, tops }) {
  for (let i = Math.min(x.length, tops.length) - 1; i >= 0; i--) {
    if (Number.isFinite(tops[i])) return { x: x[i], bytes: Math.max(...tops.slice(Math.max(0, i - LAST_PEAKS + 1), i + 1).filter(Number.isFinite)) };
  }
  return null;
}

/**
 * Height of the data between two places, as the smallest y.
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 * @param {number} left
 * @param {number} right
 */
function dataTop(model, geometry, left, right) {
  const { yOf } = scaleOf(model, geometry);
  let highest = -Infinity;
  for (let i = 0; i < model.x.length; i++) {
    // A step function holds from its row to the next one.
    const from = toPixel(geometry, model.range, model.x[i]);
    const to = toPixel(geometry, model.range, model.x[i + 1] ?? model.x[i]);
    if (to >= left && from <= right && model.tops[i] > highest) highest = model.tops[i];
  }
  return highest === -Infinity ? geometry.mainTop + geometry.mainHeight : yOf(highest);
}

/**
 * @param {Box} a
 * @param {Box} b
 */
function overlap(a, b) {
  return a.left < b.left + b.width + GAP_PX && b.left < a.left + a.width + GAP_PX && a.top < b.top + b.height + 2 && b.top < a.top + a.height + 2;
}

/** @param {string[]} lines */
const widthOf = (lines) => Math.max(...lines.map((line) => line.length)) * CHARACTER_PX;

/**
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 * @returns {Label[]}
 */
export function placeLabels(model, geometry) {
  const { evidence } = model;
  if (!evidence) return [];
  /** @type {Box[]} */
  const taken = [{ left: geometry.left, top: geometry.mainTop - LIMIT_LABEL_PX, width: widthOf([`${model.limit?.label ?? ""} 1000.0 GiB`]), height: LIMIT_LABEL_PX }];
  /** @type {Label[]} */
  const placed = [];
  const onset = onsetLabel(model, geometry);
  // Of the places for the slope those that leave the onset its own.
  const slopes = slopeLabels(model, geometry);
  const beside = slopes.filter(({ box }) => !onset || !overlap(box, onset.box));
  for (const label of [forecastLabel(model, geometry), ...beside, ...slopes, onset]) {
    if (!label || placed.some((one) => one.kind === label.kind) || taken.some((box) => overlap(box, label.box))) continue;
    placed.push(label);
    taken.push(label.box);
  }
  return placed;
}

/**
 * Below the wedge, where no data are.
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 * @returns {Label | null}
 */
function forecastLabel(model, geometry) {
  const wedge = wedgePoints(model, geometry);
  if (!wedge || !model.evidence?.wedge) return null;
  const lines = model.evidence.wedge.label;
  const width = widthOf(lines);
  const right = Math.min(wedge.right - GAP_PX, wedge.points[2][0]);
  const left = Math.max(wedge.from + 2 * GAP_PX, right - width);
  if (left + width > wedge.right) return null;
  // As low as the lower edge is where the label begins.
  const [[x0, y0], , [x2, y2]] = wedge.points;
  const edge = x2 > x0 ? y0 + ((y2 - y0) * (left - x0)) / (x2 - x0) : y0;
  const top = Math.min(Math.max(edge + 12, scaleOf(model, geometry).limitY + 12), geometry.mainTop + geometry.mainHeight - lines.length * LINE_PX - 30);
  return { kind: "forecast", box: { left, top, width, height: lines.length * LINE_PX }, lines, leader: null };
}

/**
 * Places for the slope's box, the best first: above the middle of the growth, elsewhere above it, and
 * over the limit line where the data leave no room.
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 * @returns {Label[]}
 */
function slopeLabels(model, geometry) {
  const { evidence, range } = model;
  const last = lastTop(model);
  if (!evidence?.slopeText || !last || evidence.onset === null) return [];
  const { limitY } = scaleOf(model, geometry);
  const from = Math.max(geometry.left, toPixel(geometry, range, evidence.onset));
  const to = Math.min(geometry.left + geometry.width, toPixel(geometry, range, last.x));
  const width = widthOf([evidence.slopeText]) + 12;
  if (to - from < 24) return [];
  const height = 22;
  const labelAt = (/** @type {number} */ share, /** @type {boolean} */ over) => {
    const x = from + share * (to - from);
    const left = Math.min(Math.max(geometry.left + 2, x - width / 2), geometry.left + geometry.width - width);
    const data = dataTop(model, geometry, left, left + width);
    const top = over ? geometry.mainTop - 20 : Math.max(limitY + 6, data - 16 - height);
    if (!over && top + height + 4 > data) return null;
    return /** @type {Label} */ ({ kind: "slope", box: { left, top, width, height: over ? 18 : height }, lines: [evidence.slopeText], leader: { x: Math.min(to, Math.max(left, x)), y0: top + (over ? 18 : height), y1: dataTop(model, geometry, x - 1, x + 1) } });
  };
  return [labelAt(0.55, false), labelAt(0.35, false), labelAt(0.75, false), labelAt(0.2, false), labelAt(0.6, true), labelAt(0.85, true)].flatMap((label) => label ?? []);
}

/**
 * @param {TimelineModel} model
 * @param {Geometry} geometry
 * @returns {Label | null}
 */
function onsetLabel(model, geometry) {
  const { evidence, range } = model;
  if (!evidence || evidence.onset === null || evidence.onset < range[0] || evidence.onset > range[1]) return null;
  const lines = ["growth starts", evidence.onsetText].filter(Boolean);
  const width = widthOf(lines);
  const px = toPixel(geometry, range, evidence.onset);
  const left = px + GAP_PX + width > geometry.left + geometry.width ? px - GAP_PX - width : px + GAP_PX;
  const top = scaleOf(model, geometry).limitY + 6;
  const height = lines.length * LINE_PX;
  return top + height > dataTop(model, geometry, left, left + width) ? null : { kind: "onset", box: { left, top, width, height }, lines, leader: null };
}
