// Where the parts of the timeline lie in pixels. We place them ourselves, so that the pointer, the
// cursor and the marks need nothing from inside Plotly. Pure.

export const MARGIN = { l: 58, r: 14, t: 20, b: 28 };
/** Parts of the plot area, from its lower left corner, as shares. */
export const DOMAIN = {
  x: /** @type {[number, number]} */ ([0, 0.855]),
  columns: /** @type {[number, number]} */ ([0.875, 1]),
  main: /** @type {[number, number]} */ ([0.235, 1]),
  stepTime: /** @type {[number, number]} */ ([0.09, 0.15]),
  allocations: /** @type {[number, number]} */ ([0, 0.05]),
};

/** Without strips below it the main part takes their place, except for the lane of marks. */
const LANE_SHARE = 0.065;
/** Marks and phases must not lie on the numbers of the axis, however low the chart is. */
const LANE_PX = 27;

/** Height of the band over the chart that holds the parts of a step. */
export const PARTS_PX = 26;

/**
 * Whether anything is drawn below the main part; a picture that is still to come is taken to have it.
 * @param {Pick<import("./timeline.js").TimelineModel, "strips"> | null} model
 */
export function hasStrips(model) {
  return !model || model.strips.stepTime !== null || model.strips.allocations !== null;
}

/**
 * @param {boolean} hasStrips
 * @param {number} plot_px height of the plot area
 * @returns {[number, number]}
 */
export function mainDomain(hasStrips, plot_px) {
  return hasStrips ? DOMAIN.main : [Math.min(0.5, Math.max(LANE_SHARE, LANE_PX / Math.max(1, plot_px))), 1];
}

/** @typedef {{left: number, width: number, top: number, height: number, mainTop: number, mainHeight: number, marksTop: number}} Geometry */

/**
 * @param {number} width_px
 * @param {number} height_px
 * @param {boolean} hasColumns
 * @param {boolean} hasStrips
 * @param {boolean} [hasParts]
 * @returns {Geometry}
 */
export function geometryOf(width_px, height_px, hasColumns, hasStrips, hasParts = false) {
  const top = MARGIN.t + (hasParts ? PARTS_PX : 0);
  const plotWidth = Math.max(1, width_px - MARGIN.l - MARGIN.r);
  const plotHeight = Math.max(1, height_px - top - MARGIN.b);
  const main = mainDomain(hasStrips, plotHeight);
  const share = hasColumns ? DOMAIN.x[1] : 1;
  return {
    left: MARGIN.l,
    width: plotWidth * share,
    top,
    height: plotHeight,
    mainTop: top,
    mainHeight: plotHeight * (main[1] - main[0]),
    marksTop: top + plotHeight * (1 - main[0]),
  };
}

/**
 * @param {Geometry} geometry
 * @param {[number, number]} range
 * @param {number} x
 */
export function toPixel(geometry, range, x) {
  return geometry.left + ((x - range[0]) / (range[1] - range[0])) * geometry.width;
}

/**
 * @param {Geometry} geometry
 * @param {[number, number]} range
 * @param {number} px
 */
export function toX(geometry, range, px) {
  return range[0] + ((px - geometry.left) / geometry.width) * (range[1] - range[0]);
}
