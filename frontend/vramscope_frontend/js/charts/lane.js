// The lane under the main chart: phases as bands, and where a process took over as lines through the
// chart. Plain elements, so that a redraw costs next to nothing.

import { el, fillWhenChanged } from "../dom.js";
import { toPixel } from "./geometry.js";

/** @typedef {import("./geometry.js").Geometry} Geometry */
/** @typedef {import("../phases.js").Band} Band */
/** @typedef {{left: number, width: number, name: string, label: string, labelLeft: number, kind: Band["kind"], title: string, many: number}} PlacedBand */

/** Less would not be seen; evaluations between two steps have no width at all on the axis of steps. */
const LEAST_PX = 3;
const MERGED_BELOW_PX = 3;
const LABEL_GAP_PX = 5;
/** Of 12 px text, on the wide side: a label that is left out is in the title. */
const CHARACTER_PX = 6.6;

/**
 * Where bands go, and which of them have room for their name.
 * @param {Band[]} bands
 * @param {Geometry} geometry
 * @param {[number, number]} range
 * @param {number[]} marks pixels at which a mark stands
 * @returns {PlacedBand[]}
 */
export function placeBands(bands, geometry, range, marks) {
  const right = geometry.left + geometry.width;
  /** @type {PlacedBand[]} */
  const placed = [];
  for (const band of bands) {
    if (band.x1 < range[0] || band.x0 > range[1]) continue;
    const from = Math.max(geometry.left, toPixel(geometry, range, band.x0));
    const to = Math.min(right, Math.max(from + LEAST_PX, toPixel(geometry, range, band.x1)));
    const before = placed.findLast((one) => one.name === band.name);
    if (before && from - (before.left + before.width) < MERGED_BELOW_PX && before.width + (to - from) < 2 * geometry.width) {
      before.width = Math.max(before.width, to - before.left);
      before.many++;
      before.title = before.many > 8 ? `${band.name}, ${before.many} stretches` : `${before.title}\n${band.title}`;
    } else placed.push({ left: from, width: to - from, name: band.name, label: "", labelLeft: 0, kind: band.kind, title: band.title, many: 1 });
  }
  for (const cluster of clustersOf(placed)) {
    const last = cluster.right;
    const widest = cluster.bands.reduce((a, b) => (b.width > a.width ? b : a));
    const from = last + LABEL_GAP_PX;
    const taken = [...placed.map((one) => one.left), ...marks.map((px) => px - 12)];
    const fits = (/** @type {string} */ text) => {
      const to = from + text.length * CHARACTER_PX;
      return to <= right && !taken.some((px) => px > last - 1 && px < to + LABEL_GAP_PX) && !marks.some((px) => Math.abs(px - from) < 12);
    };
    // All of them by name, in their order; where that is too long the widest.
    const all = [...new Set(cluster.bands.map((one) => one.name))].join(" · ");
    const label = [all, widest.name].find(fits);
    if (label) {
      widest.label = label;
      widest.labelLeft = from;
    }
  }
  return placed;
}

/**
 * Bands that touch: they are named in one place.
 * @param {PlacedBand[]} placed in order
 */
function clustersOf(placed) {
  /** @type {{bands: PlacedBand[], right: number}[]} */
  const clusters = [];
  for (const band of placed) {
    const open = clusters.at(-1);
    const right = band.left + band.width;
    if (open && band.left - open.right < LABEL_GAP_PX) {
      open.bands.push(band);
      open.right = Math.max(open.right, right);
    } else clusters.push({ bands: [band], right });
  }
  return clusters;
}

/**
 * @param {HTMLElement} lane
 * @param {PlacedBand[]} placed
 */
export function drawBands(lane, placed) {
  fillWhenChanged(lane, JSON.stringify(placed.map((one) => [Math.round(one.left), Math.round(one.width), one.label, Math.round(one.labelLeft), one.title])), () =>
    placed.flatMap((one) => {
      const band = el("div", { class: "band", "data-kind": one.kind, title: one.title });
      band.style.left = `${one.left}px`;
      band.style.width = `${one.width}px`;
      if (!one.label) return [band];
      const label = el("span", { class: "band-name" }, one.label);
      label.style.left = `${one.labelLeft}px`;
      return [band, label];
    }));
}

/**
 * @param {HTMLElement} host
 * @param {import("./timeline.js").Cut[]} cuts
 * @param {Geometry} geometry
 * @param {[number, number]} range
 */
export function drawCuts(host, cuts, geometry, range) {
  const visible = cuts.filter((cut) => cut.x > range[0] && cut.x < range[1]).map((cut) => ({ ...cut, px: toPixel(geometry, range, cut.x) }));
  fillWhenChanged(host, JSON.stringify([geometry.mainHeight, visible.map(({ px, text }) => [Math.round(px), text])]), () =>
    visible.map(({ px, text }) => {
      const line = el("div", { class: "cut", title: text });
      Object.assign(line.style, { left: `${px}px`, top: `${geometry.top}px`, height: `${geometry.mainHeight}px` });
      return line;
    }));
}
