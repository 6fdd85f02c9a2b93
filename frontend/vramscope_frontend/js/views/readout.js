// What lies under the pointer: step or time, name, GiB with two decimals, exact bytes.

import { LAYERS } from "../composition.js";
import { el } from "../dom.js";
import { exactBytes, sizeText } from "../format.js";
import { indexAt } from "../series.js";

/** @typedef {import("../memory-model.js").Reading} Reading */
/** @typedef {import("../charts/timeline.js").TimelineModel} TimelineModel */

/**
 * @typedef {object} Pointed
 * @property {number} cursor
 * @property {Reading | null} reading
 * @property {TimelineModel} model
 * @property {boolean} byStep
 * @property {string | null} [phase] what the rank was doing
 * @property {number | null} height_bytes null without a pointer
 */

/**
 * @param {Pointed} pointed
 * @returns {Node[]}
 */
export function chipOf(pointed) {
  const { cursor, reading, model, byStep, phase } = pointed;
  const head = byStep && reading ? reading.place || reading.endLabel : new Date(model.origin_ns / 1e6 + cursor * 1000).toLocaleTimeString("en-GB", { hour12: false });
  const under = underPointer(pointed);
  return [el("span", {}, phase && phase !== "train" ? `${head} · ${phase}` : head), ...(under ? [el("small", {}, `${under.name} ${sizeText(under.bytes, 2)} · ${exactBytes(under.bytes)}`)] : [])];
}

/**
 * The layer that covers the height, or the line nearest to it.
 * @param {Pick<Pointed, "cursor" | "reading" | "model" | "height_bytes">} pointed
 * @returns {{name: string, bytes: number} | null}
 */
export function underPointer({ cursor, reading, model, height_bytes }) {
  if (height_bytes === null) return null;
  if (model.layers && reading) {
    let top = 0;
    for (const layer of LAYERS) {
      const bytes = reading.end.layers[layer.id] ?? 0;
      top += bytes;
      if (height_bytes < top && height_bytes >= 0) return { name: layer.name, bytes };
    }
    return height_bytes >= 0 && reading.end.free !== null ? { name: "Free on the device", bytes: reading.end.free } : null;
  }
  const lines = model.lines ?? (model.envelope ? envelopeLines(model.envelope) : []);
  const index = indexAt(model.x, cursor);
  const near = lines.map((line) => ({ name: line.name, bytes: line.values[index] })).filter((line) => Number.isFinite(line.bytes));
  near.sort((a, b) => Math.abs(a.bytes - height_bytes) - Math.abs(b.bytes - height_bytes));
  return near[0] ?? null;
}

/** @param {import("../charts/timeline.js").Envelope} envelope */
function envelopeLines(envelope) {
  return [
    { name: "Least of all ranks", values: envelope.least },
    { name: "Median", values: envelope.median },
    { name: `Rank ${envelope.worstRank}`, values: envelope.worst },
    { name: "Most of all ranks", values: envelope.most },
  ];
}
