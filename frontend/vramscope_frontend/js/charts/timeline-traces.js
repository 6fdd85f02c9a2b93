// The traces of the timeline: areas of a composition, lines, the envelope of ranks, columns, strips.

import { LAYERS } from "../composition.js";
import { known } from "../format.js";
import { CROSSED, faded, hatchColour } from "./theme.js";

/** @typedef {import("./theme.js").Tokens} Tokens */
/** @typedef {import("./timeline.js").TimelineModel} TimelineModel */
/** @typedef {import("../composition.js").Composition} Composition */

/** Above this many steps in view the separators between layers would be most of the picture. */
const SEPARATED_STEPS = 300;

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @returns {Partial<Plotly.PlotData>[]}
 */
export function timelineTraces(tokens, model) {
  return [
    ...(model.layers ? areas(tokens, model) : []),
    ...(model.lines ?? []).map((line) => lineTrace(tokens, model, line)),
    ...(model.envelope ? envelopeTraces(tokens, model, model.envelope) : []),
    ...(model.columns ? columns(tokens, model, model.columns) : []),
    ...strips(tokens, model),
  ];
}

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @returns {Partial<Plotly.PlotData>[]}
 */
function areas(tokens, model) {
  const separator = model.x.length <= SEPARATED_STEPS ? 0.8 : 0;
  const dim = model.dimmed ? 0.45 : 1;
  return LAYERS.flatMap((layer) => {
    const values = model.layers?.[layer.id];
    if (!values?.some((value) => value > 0)) return [];
    const opacity = (layer.pattern && !CROSSED.has(layer.id) ? 0.62 : 1) * dim;
    return {
      name: layer.name,
      type: "scatter",
      mode: "lines",
      stackgroup: "a",
      x: model.x,
      y: values.map((value) => (known(value) ? value / model.unit.bytes : 0)),
      line: { width: separator, color: tokens.panel, shape: "hv" },
      fillcolor: faded(tokens.category[layer.id], opacity),
      hoverinfo: "skip",
    };
  });
}

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @param {import("./timeline.js").Line} line
 * @returns {Partial<Plotly.PlotData>}
 */
function lineTrace(tokens, model, line) {
  return {
    name: line.name,
    type: "scatter",
    mode: "lines",
    x: model.x,
    y: line.values.map((value) => value / model.unit.bytes),
    line: { width: line.width, color: tokens[line.ink], dash: line.dash, shape: "hv" },
    opacity: model.dimmed ? 0.45 : 1,
    hoverinfo: "skip",
  };
}

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @param {import("./timeline.js").Envelope} envelope
 * @returns {Partial<Plotly.PlotData>[]}
 */
function envelopeTraces(tokens, model, envelope) {
  const scaled = (/** @type {number[]} */ values) => values.map((value) => value / model.unit.bytes);
  const bound = { type: /** @type {const} */ ("scatter"), mode: /** @type {const} */ ("lines"), x: model.x, hoverinfo: /** @type {const} */ ("skip") };
  return [
    { ...bound, name: "least of all ranks", y: scaled(envelope.least), line: { width: 0, shape: "hv" } },
    { ...bound, name: "most of all ranks", y: scaled(envelope.most), line: { width: 0, shape: "hv" }, fill: "tonexty", fillcolor: faded(tokens.ink, 0.12) },
    { ...bound, name: "median", y: scaled(envelope.median), line: { width: 1.2, color: tokens.ink2, shape: "hv" } },
    { ...bound, name: `rank ${envelope.worstRank}`, y: scaled(envelope.worst), line: { width: 1.5, color: tokens.ink, shape: "hv" } },
  ];
}

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @param {{end: Composition, peak: Composition}} pair
 * @returns {Partial<Plotly.PlotData>[]}
 */
function columns(tokens, model, { end, peak }) {
  return LAYERS.flatMap((layer) => {
    const values = [end.layers[layer.id], peak.layers[layer.id]];
    if (!values.some((value) => known(value) && value > 0)) return [];
    const colour = tokens.category[layer.id];
    const hatched = layer.pattern !== "";
    const ground = hatched && !CROSSED.has(layer.id) ? tokens.panel : colour;
    return /** @type {Partial<Plotly.PlotData>} */ ({
      name: layer.name,
      type: "bar",
      x: ["end", "peak"],
      y: values.map((value) => (known(value) ? value / model.unit.bytes : 0)),
      xaxis: "x2",
      yaxis: "y",
      opacity: model.dimmed ? 0.45 : 1,
      marker: {
        color: ground,
        line: { width: 0.8, color: tokens.panel },
        ...(hatched ? { pattern: { shape: layer.pattern, fgcolor: hatchColour(tokens, layer.id), bgcolor: ground, size: layer.pattern === "." ? 5 : 6, solidity: layer.pattern === "x" ? 0.2 : 0.42, fillmode: "replace" } } : {}),
      },
      hoverinfo: "skip",
    });
  });
}

/**
 * @param {Tokens} tokens
 * @param {TimelineModel} model
 * @returns {Partial<Plotly.PlotData>[]}
 */
function strips(tokens, { strips }) {
  /** @type {Partial<Plotly.PlotData>[]} */
  const traces = [];
  if (strips.stepTime) {
    traces.push({ name: "step time", type: "scatter", mode: "lines", x: strips.stepTime.x, y: strips.stepTime.y, yaxis: "y2", line: { width: 1, color: tokens.ink2, shape: "hv" }, hoverinfo: "skip" });
  }
  if (strips.allocations) {
    traces.push({ name: "device allocations", type: "bar", x: strips.allocations.x, y: strips.allocations.y, width: strips.allocations.width, yaxis: "y3", marker: { color: tokens.ink2, line: { width: 0 } }, hoverinfo: "skip" });
  }
  return traces;
}
