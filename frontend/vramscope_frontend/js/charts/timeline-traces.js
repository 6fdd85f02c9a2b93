// The traces of the timeline: areas of a composition, lines, the envelope of ranks, columns, strips.

import { LAYERS } from "../composition.js";
import { known } from "../format.js";
import { accusing, CROSSED, faded, hatchColour, severityFill } from "./theme.js";

/** @typedef {import("./theme.js").Tokens} Tokens */
/** @typedef {import("./timeline.js").TimelineModel} TimelineModel */
/** @typedef {import("../composition.js").Composition} Composition */

/** Above this many steps in view the separators between layers would be most of the picture. */
const SEPARATED_STEPS = 300;

/**
 * @param {Tokens} base
 * @param {TimelineModel} model
 * @returns {Partial<Plotly.PlotData>[]}
 */
export function timelineTraces(base, model) {
  const tokens = accusing(base, model.accused);
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
    const hatched = patternOf(layer, model) !== "" && !CROSSED.has(layer.id);
    const opacity = (hatched ? 0.62 : 1) * dim;
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
 * What is accused is hatched, whatever it is.
 * @param {import("../composition.js").Layer} layer
 * @param {TimelineModel} model
 */
function patternOf(layer, { accused }) {
  return layer.pattern || (accused?.layer === layer.id ? "\\" : "");
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
    { ...bound, name: `rank ${envelope.worstRank}`, y: scaled(envelope.worst), line: { width: 1.5, color: envelope.severity && envelope.severity !== "info" ? severityFill(tokens, envelope.severity) : tokens.ink, shape: "hv" } },
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
    const pattern = patternOf(layer, model);
    const hatched = pattern !== "";
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
        ...(hatched ? { pattern: { shape: pattern, fgcolor: hatchColour(tokens, layer.id), bgcolor: ground, size: pattern === "." ? 5 : 6, solidity: pattern === "x" ? 0.2 : 0.42, fillmode: "replace" } } : {}),
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
