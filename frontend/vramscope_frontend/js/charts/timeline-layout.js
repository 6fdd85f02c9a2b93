// Axes, limit lines and labels of the timeline. y starts at 0 and ends at the limit: free space is
// what you see.

import { duration, sizeText } from "../format.js";
import { DOMAIN, hasStrips, mainDomain, MARGIN, PARTS_PX } from "./geometry.js";
import { baseLayout, faded } from "./theme.js";
import { clockTicks, sizeTicks, stepTicks, stripTop } from "./ticks.js";

/** Height of a label in the main part, with some air. */
const FREE_LABEL_SHARE = 0.07;
/** Upper end of the word in the corner of an emulated run. */
const WATERMARK_PX = 32;

/** @typedef {import("./theme.js").Tokens} Tokens */
/** @typedef {import("./timeline.js").TimelineModel} TimelineModel */

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @param {number} width_px
 * @param {number} height_px
 * @returns {Partial<Plotly.Layout>}
 */
export function timelineLayout(tokens, model, width_px, height_px) {
  const top = (model.limit?.bytes ?? model.highest * 1.1) / model.unit.bytes || 1;
  const floor = Math.min(model.floor / model.unit.bytes, 0.99 * top);
  const hasColumns = model.columns !== null;
  const margin = { ...MARGIN, t: MARGIN.t + (model.parts.length ? PARTS_PX : 0) };
  const main = mainDomain(hasStrips(model), height_px - margin.t - margin.b);
  const xTicks = model.xKind === "step" ? stepTicks(...model.range, model.numbering) : clockTicks(...model.range, model.origin_ns);
  const axis = { fixedrange: true, zeroline: false, showgrid: false, ticks: /** @type {const} */ ("") };
  return {
    ...baseLayout(tokens),
    width: width_px,
    height: height_px,
    margin: { ...margin, pad: 0 },
    barmode: "stack",
    bargap: 0.18,
    xaxis: { ...axis, domain: hasColumns ? DOMAIN.x : [0, 1], anchor: "free", position: 0, range: model.range, tickmode: "array", ...xTicks, showline: false, automargin: false },
    xaxis2: { ...axis, domain: DOMAIN.columns, anchor: "y", type: "category", range: [-0.5, 1.5], showline: true, linecolor: tokens.line2, visible: hasColumns, tickangle: 0 },
    yaxis: { ...axis, domain: main, range: [floor, floor + (top - floor) * 1.01], tickmode: "array", ...sizeTicks(top, model.unit.name, 7, floor), showgrid: true, gridcolor: tokens.line },
    yaxis2: stripAxis(tokens, DOMAIN.stepTime, stripTop(Math.max(0, ...(model.strips.stepTime?.y ?? []).filter(Number.isFinite))), (value) => duration(value / 1000), model.strips.stepTime !== null),
    yaxis3: { ...stripAxis(tokens, DOMAIN.allocations, Math.max(1, Math.ceil(stripTop(Math.max(0, ...(model.strips.allocations?.y ?? []))))), String, model.strips.allocations !== null), visible: model.strips.allocations !== null },
    shapes: shapes(tokens, model, top, main[0]),
    annotations: annotations(tokens, model, top, hasColumns, main[0], (height_px - MARGIN.t - MARGIN.b) * (1 - main[0])),
  };
}

/**
 * @param {Tokens} tokens
 * @param {[number, number]} domain
 * @param {number} top
 * @param {(value: number) => string} text
 * @param {boolean} used
 * @returns {Partial<Plotly.LayoutAxis>}
 */
function stripAxis(tokens, domain, top, text, used) {
  return {
    // A little more than what is ticked: Plotly leaves out grid lines at the very ends of an axis.
    domain, range: [-0.04 * top, 1.08 * top], fixedrange: true, zeroline: false, ticks: "", tickmode: "array",
    tickvals: used ? [0, top] : [], ticktext: used ? ["0", text(top)] : [], showgrid: true, gridcolor: tokens.line, anchor: "x",
  };
}

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @param {number} top
 * @param {number} foot lower end of the main part
 * @returns {Partial<Plotly.Shape>[]}
 */
function shapes(tokens, model, top, foot) {
  const right = model.columns ? DOMAIN.x[1] : 1;
  const rule = (/** @type {number} */ y) => /** @type {Partial<Plotly.Shape>} */ ({ type: "line", xref: "paper", x0: 0, x1: right, yref: "paper", y0: y, y1: y, line: { width: 1, color: tokens.line2 } });
  /** @type {Partial<Plotly.Shape>[]} */
  const drawn = [
    { type: "line", xref: "paper", x0: 0, x1: 0, yref: "paper", y0: foot, y1: 1, line: { width: 1, color: tokens.line2 } },
    rule(foot),
    ...(model.strips.allocations ? [rule(DOMAIN.allocations[0])] : []),
  ];
  // The break at the foot of an axis that does not begin at 0.
  if (model.floor > 0) drawn.push({ type: "path", xref: "paper", yref: "paper", path: `M-0.009,${foot + 0.004}L-0.003,${foot + 0.018}L0.003,${foot + 0.004}L0.009,${foot + 0.018}`, line: { width: 1.5, color: tokens.ink } });
  if (model.limit) drawn.push({ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y", y0: top, y1: top, line: { width: 1.5, color: tokens.ink, dash: model.limit.dashed ? "dash" : "solid" } });
  return drawn;
}

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @param {number} top
 * @param {boolean} hasColumns
 * @param {number} foot
 * @param {number} main_px height of the main part
 * @returns {Partial<Plotly.Annotations>[]}
 */
function annotations(tokens, model, top, hasColumns, foot, main_px) {
  const plain = { showarrow: false, borderpad: 0, font: { size: 12, color: tokens.ink, family: tokens.font } };
  const stripName = (/** @type {string} */ text, /** @type {number} */ y) => /** @type {Partial<Plotly.Annotations>} */ ({ ...plain, text, xref: "paper", x: 0, xshift: 6, xanchor: "left", yref: "paper", y, yanchor: "bottom", font: { ...plain.font, color: tokens.ink3 } });
  /** @type {Partial<Plotly.Annotations>[]} */
  const drawn = [];
  if (model.strips.stepTime) drawn.push(stripName("step time", DOMAIN.stepTime[1]));
  if (model.strips.allocations) drawn.push(stripName(model.xKind === "step" ? "device allocations per step" : "device allocations", DOMAIN.allocations[1]));
  if (model.limit) {
    drawn.push({ ...plain, text: `<b>${sizeText(model.limit.bytes)}</b> ${model.limit.label}`, xref: "paper", x: 0, xshift: 2, xanchor: "left", yref: "y", y: top, yanchor: "bottom", yshift: 1 });
  }
  if (hasColumns && model.freeText) {
    // Above the limit line where the column below leaves no room for it.
    const fits = (top - (model.columns?.peak.used ?? 0) / model.unit.bytes) / (top - model.floor / model.unit.bytes) > FREE_LABEL_SHARE;
    drawn.push({ ...plain, text: `<b>${model.freeText.value}</b> ${model.freeText.unit}`, xref: "paper", x: (DOMAIN.columns[0] + 1) / 2, xanchor: "center", yref: "y", y: top, yanchor: fits ? "top" : "bottom", yshift: fits ? -5 : 1 });
  }
  if (model.floor > 0) {
    drawn.push({ ...plain, text: `constant below: <b>${sizeText(model.floor)}</b>`, xref: "paper", x: 0, xshift: 10, xanchor: "left", yref: "paper", y: foot, yshift: 5, yanchor: "bottom", bgcolor: tokens.panel, bordercolor: tokens.line2, borderpad: 2 });
  }
  if (model.emulated) {
    drawn.push({ ...plain, text: "EMULATED", xref: "paper", x: hasColumns ? DOMAIN.x[1] : 1, xshift: -8, xanchor: "right", yref: "paper", y: foot, yshift: 6, yanchor: "bottom", font: { size: 20, color: faded(tokens.ink, 0.5), family: tokens.font } });
  }
  if (model.envelope) {
    const last = model.envelope.worst.findLastIndex(Number.isFinite);
    // The newest bin may have only begun.
    const end = Math.max(0, ...model.envelope.worst.slice(Math.max(0, last - 2), last + 1).filter(Number.isFinite)) / model.unit.bytes;
    // Above the word in the corner, however low the line ends.
    const above_px = model.emulated ? Math.max(0, WATERMARK_PX - (end / top) * main_px) : 0;
    drawn.push({ ...plain, bgcolor: tokens.panel, text: `rank ${model.envelope.worstRank}`, xref: "x", x: Math.min(model.range[1], Math.max(model.range[0], model.x[last] ?? model.range[1])), xanchor: "right", yref: "y", y: end, yanchor: "bottom", yshift: 2 + above_px });
  }
  return drawn;
}
