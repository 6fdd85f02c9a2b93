// What a chart draws, as a real table: for screen readers, and for whoever wants the numbers.

import { LAYERS } from "../composition.js";
import { clock, count, inUnit } from "../format.js";
import { numberAt } from "../numbering.js";
import { dataTable } from "./parts.js";

/** @typedef {import("../charts/timeline.js").TimelineModel} TimelineModel */

const MOST_ROWS = 200;

/** @param {TimelineModel} model */
export function chartTable(model) {
  const columns = model.envelope
    ? [{ name: "least", values: model.envelope.least }, { name: "median", values: model.envelope.median }, { name: `rank ${model.envelope.worstRank}`, values: model.envelope.worst }, { name: "most", values: model.envelope.most }]
    : (model.lines ?? LAYERS.flatMap((layer) => {
        const values = model.layers?.[layer.id];
        return values?.some((value) => value > 0) ? [{ name: layer.name, values }] : [];
      }));
  const every = Math.max(1, Math.ceil(model.x.length / MOST_ROWS));
  const rows = model.x.flatMap((x, i) => {
    if (i % every !== 0) return [];
    const at = model.xKind === "step" ? `${Number.isInteger(x) ? "" : "in "}${count(numberAt(model.numbering, Math.ceil(x)))}` : clock(model.origin_ns + x * 1e9);
    return [[at, ...columns.map((column) => inUnit(column.values[i], model.unit))]];
  });
  return dataTable([model.xKind === "step" ? ">Step" : ">Time", ...columns.map((column) => `>${column.name}, ${model.unit.name}`)], rows.reverse(), "What the chart draws, newest first");
}
