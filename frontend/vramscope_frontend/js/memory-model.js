// From rows to one picture: which rows, which layers, which marks and holes. Pure.

import { compose, countersAt, countersFrom, LAYERS } from "./composition.js";
import { pickRows } from "./downsampling.js";
import * as fields from "./fields.js";
import { accuse, floorBefore } from "./findings/accusation.js";
import { age, count, duration, inUnit, known, plural, tableUnit } from "./format.js";
import { missingSteps, silences } from "./gaps.js";
import { endState, HELD, MOMENT, MOMENTS } from "./high-moments.js";
import { beginsLife, numberOf, stretchesOf } from "./numbering.js";
import { heightOf, highestRow } from "./peaks.js";
import { partsNear } from "./step-parts.js";
import { indexAt, isRolledUp, lowerBound, rowAt, rowsBetween, takeRows } from "./series.js";
import { partBands, placeWithin, samplesWithin } from "./within-steps.js";

/** @typedef {import("./series.js").Table} Table */
/** @typedef {import("./memory-view.js").MemoryView} MemoryView */
/** @typedef {import("./composition.js").Composition} Composition */
/** @typedef {import("./charts/timeline.js").TimelineModel} TimelineModel */
/** @typedef {import("./charts/timeline.js").Line} Line */
/** @typedef {import("./charts/timeline.js").Mark} Mark */
/** @typedef {import("./charts/timeline.js").Zone} Zone */

/**
 * What the breakdown table and the readout show.
 * @typedef {object} Reading
 * @property {Composition} end end of the last full step, the newest sample, or the row at the cursor
 * @property {Composition} peak
 * @property {string} endLabel
 * @property {string} place that the cursor is at, in full
 * @property {boolean} atCursor
 * @property {string} peakTitle
 * @property {number} x of the row that is read
 * @property {number} peakX of the highest row
 * @property {import("./step-parts.js").PartsOfStep | null} peakParts of the highest step
 * @property {import("./step-parts.js").PartsOfStep | null} parts of the step that is read, or of one before it
 * @property {boolean} [isSample] read at an instant within a step
 */

/**
 * @typedef {object} Scene
 * @property {MemoryView} view
 * @property {Table} steps rows at step ends
 * @property {Table} high the highest known moment of the same steps
 * @property {Table} samples
 * @property {[number, number]} range
 * @property {number | null} limit_bytes
 * @property {string} limitLabel
 * @property {boolean} limitDashed
 * @property {number} origin_ns
 * @property {boolean} emulated
 * @property {boolean} dimmed
 * @property {Mark[]} marks
 * @property {import("./phases.js").Band[]} [bands]
 * @property {import("./charts/timeline.js").Cut[]} [cuts]
 * @property {number} samplesLost
 * @property {boolean} isWhole false while rows may still be on their way: holes say nothing yet
 * @property {Zone[]} silentZones
 * @property {import("./findings/growth-evidence.js").Evidence | null} [evidence] of the finding that the chart shows
 * @property {number | null} [onset_bytes] that a step handed on when the growth began
 */

/**
 * @param {Scene} scene
 * @param {number | null} cursor
 * @returns {{model: TimelineModel, reading: Reading | null}}
 */
export function pictureOf(scene, cursor) {
  const { view, range, limit_bytes } = scene;
  const byStep = view.xKind === "step";
  const near = nearOf(scene);
  const source = near ?? (byStep ? scene.high : scene.samples);
  const rows = takeRows(source, pickRows(source, range[0], range[1], fields.ALLOCATED, fields.RESERVED));
  const reading = readingOf(scene, cursor);
  const bySamples = !byStep || near !== null;
  const states = rows.x.map((_, i) => stateAt(scene, rows, i, bySamples, null));
  const highest = Math.max(0, ...states.map((state) => state.used ?? 0));
  const unit = tableUnit(limit_bytes ?? highest);
  // A step function has no width at its last row; without this a run of one step would be invisible.
  const x = rows.x.length ? [...rows.x, Math.max(rows.x[rows.x.length - 1], Math.min(range[1], rows.x[rows.x.length - 1] + 1))] : [];
  const closed = (/** @type {number[]} */ values) => (values.length ? [...values, values[values.length - 1]] : values);
  const composition = view.drawn === "composition";
  return {
    reading,
    model: {
      xKind: view.xKind,
      range,
      origin_ns: scene.origin_ns,
      unit,
      limit: known(limit_bytes) ? { bytes: limit_bytes, label: scene.limitLabel, dashed: scene.limitDashed } : null,
      highest,
      floor: view.y === "moving" ? floorOf(states, rows, scene.evidence?.onset ?? -Infinity) : 0,
      x,
      layers: composition ? Object.fromEntries(LAYERS.map(({ id }) => [id, closed(states.map((state) => state.layers[id] ?? NaN))])) : null,
      lines: composition ? null : linesOf(rows, !bySamples, closed),
      envelope: null,
      columns: composition && reading ? { end: reading.end, peak: reading.peak } : null,
      strips: stripsOf(scene, near ? takeRows(scene.high, pickRows(scene.high, range[0], range[1], fields.ALLOCATED, fields.RESERVED)) : rows),
      freeText: reading && known(reading.peak.free) ? { value: inUnit(reading.peak.free, unit), unit: "free" } : null,
      numbering: byStep ? stretchesOf(scene.steps) : [],
      bands: scene.bands ?? [],
      parts: byStep && view.range ? partBands(scene.steps, range) : [],
      cuts: scene.cuts ?? [],
      marks: scene.marks,
      zones: [...(scene.isWhole ? gapZones(scene, byStep ? scene.high : scene.samples) : []), ...scene.silentZones],
      emulated: scene.emulated,
      dimmed: scene.dimmed,
      evidence: scene.evidence ?? null,
      accused: scene.evidence?.layer ? { layer: scene.evidence.layer, severity: scene.evidence.severity } : null,
      tops: closed(states.map((state) => state.used ?? NaN)),
    },
  };
}

/**
 * Samples of a few steps, once the reader has zoomed in on them: the first steps of a run are steps.
 * @param {Scene} scene
 */
function nearOf({ view, steps, samples, range }) {
  return view.xKind === "step" && view.range ? samplesWithin(steps, samples, range) : null;
}

/** How much of what never changes stays in the picture. */
const FLOOR_SHARE = 0.96;

/**
 * Where the axis begins when only what moves is shown: just below the least that tensors ever held,
 * or held since the growth began that a finding is about.
 * @param {Composition[]} states
 * @param {Table} rows
 * @param {number} onset
 */
function floorOf(states, rows, onset) {
  const last = rows.x.at(-1) ?? 0;
  const counts = (/** @type {unknown} */ _, /** @type {number} */ i) => onset > last || rows.x[i] >= onset;
  const least = Math.min(...states.filter(counts).map((state) => state.allocated ?? 0), ...(rows.columns[HELD] ?? []).filter(counts).filter(known));
  return Number.isFinite(least) ? FLOOR_SHARE * least : 0;
}

/**
 * State that a row of the picture stands for: the highest moment of its step, or its sample.
 * @param {Scene} scene
 * @param {Table} rows
 * @param {number} index
 * @param {boolean} bySamples
 * @param {number | null} limit_bytes
 */
function stateAt(scene, rows, index, bySamples, limit_bytes) {
  const floor = bySamples ? floorBefore(scene.steps, rows.t[index]) : readerOf(rows, index)(HELD);
  return accuse(compose(countersOf(rows, index, bySamples, scene.steps), limit_bytes), scene, floor, rows.t[index]);
}

/**
 * @param {Table} rows
 * @param {number} index
 * @param {boolean} bySamples
 * @param {Table} steps
 */
function countersOf(rows, index, bySamples, steps) {
  const at = readerOf(rows, index);
  if (!bySamples) return countersFrom(at, true, at(HELD), MOMENTS[at(MOMENT) ?? 0], at);
  // What the step before handed on.
  const before = readerOf(steps, indexAt(steps.t, rows.t[index]));
  return countersFrom(at, !isRolledUp(rows, index), before(fields.ALLOCATED), "instant", before);
}

/**
 * @param {Table} table
 * @param {number} index
 * @returns {import("./composition.js").RowReader}
 */
function readerOf({ columns }, index) {
  return (name) => {
    const value = columns[name]?.[index];
    return known(value) ? value : null;
  };
}

/**
 * @param {Scene} scene
 * @param {number | null} cursor
 * @returns {Reading | null}
 */
export function readingOf(scene, cursor) {
  const { range, limit_bytes, view } = scene;
  const byStep = view.xKind === "step";
  const source = byStep ? scene.high : scene.samples;
  const near = nearOf(scene);
  const [first, to] = rowsBetween(source, range[0], range[1]);
  // From near, step 17 ends where the picture begins.
  const from = near ? Math.min(to - 1, lowerBound(source.x, range[0] + 1e-6)) : first;
  if (to <= from) return null;
  const at = cursor === null ? to - 1 : Math.min(to - 1, Math.max(from, indexAt(source.x, byStep ? Math.round(cursor) : cursor)));
  // Equal use is the rule (a cache that stays): among those the row with most in tensors is the peak.
  const columns = source.columns;
  const height = (/** @type {number} */ i) => heightOf(Math.max(columns[fields.DEVICE_USED][i] || 0, columns[fields.RESERVED][i] || 0), columns[fields.ALLOCATED][i]);
  const top = highestRow(source, height, from, to)?.index ?? at;
  const stateOf = (/** @type {number} */ i) => stateAt(scene, source, i, !byStep, limit_bytes);
  const peak = {
    peak: stateOf(top),
    peakX: source.x[top],
    peakParts: byStep ? partsNear(source, top) : null,
    peakTitle: byStep ? `${isExact(source, top) ? "highest moment" : "highest known moment"} of the steps shown: step ${count(numberOf(source, top))}${inPart(partsNear(source, top))}` : "highest sample of the time shown",
  };
  if (cursor !== null && near) return { ...peak, ...sampleAt(scene, near, cursor) };
  return {
    ...peak,
    end: cursor === null && byStep ? endOf(scene, at) : stateOf(at),
    x: source.x[at],
    parts: byStep ? partsNear(source, at) : null,
    endLabel: cursor === null ? (byStep ? "Step end" : "Latest") : byStep ? `step ${count(numberOf(source, at))}` : `+${age(source.x[at])}`,
    place: cursor !== null && byStep ? `step ${count(numberOf(source, at))}` : "",
    atCursor: cursor !== null,
  };
}

/** @param {import("./step-parts.js").PartsOfStep | null} parts */
function inPart(parts) {
  return parts?.isOwn && parts.rows.some((part) => part.isHighest) ? `, in ${parts.highest}` : "";
}

/**
 * Whether the highest moment of a step is exact.
 * @param {Table} high
 * @param {number} index
 */
function isExact(high, index) {
  return known(high.columns[fields.PEAK_ALLOCATED]?.[index]);
}

/**
 * The sample at the cursor, where a few steps are seen from near.
 * @param {Scene} scene
 * @param {Table} near
 * @param {number} cursor
 * @returns {Pick<Reading, "end" | "x" | "parts" | "endLabel" | "place" | "atCursor" | "isSample">}
 */
function sampleAt(scene, near, cursor) {
  const at = Math.max(0, indexAt(near.x, cursor));
  const { number, index, after_s } = placeWithin(scene.steps, near.x[at]);
  const after = known(after_s) ? `+${duration(after_s)}` : `step ${count(number)}`;
  return { end: stateAt(scene, near, at, true, scene.limit_bytes), x: near.x[at], parts: partsNear(scene.steps, index), endLabel: after, place: `step ${count(number)}, ${after}`, atCursor: true, isSample: true };
}

/**
 * @param {Scene} scene
 * @param {number} index of a step
 */
function endOf(scene, index) {
  const { steps, samples, limit_bytes } = scene;
  const state = endState(steps, index, samples);
  const row = Object.fromEntries(Object.entries(state).filter(([, value]) => known(value)));
  const composition = compose(countersAt(row, true, row[fields.ALLOCATED] ?? null, "end", rowAt(steps, index)), limit_bytes);
  return accuse(composition, scene, row[fields.ALLOCATED] ?? null, steps.t[index]);
}

/**
 * @param {Table} rows
 * @param {boolean} byStep
 * @param {(values: number[]) => number[]} closed
 * @returns {Line[]}
 */
function linesOf(rows, byStep, closed) {
  /** @type {Line[]} */
  const lines = [];
  const add = (/** @type {string} */ id, /** @type {string} */ name, /** @type {string} */ field, /** @type {Line["ink"]} */ ink, /** @type {number} */ width, /** @type {Line["dash"]} */ dash) => {
    const values = rows.columns[field];
    if (values?.some(known)) lines.push({ id, name, values: closed(values), ink, width, dash });
  };
  add("device", "Used on the device", fields.DEVICE_USED, "ink3", 1.5, "solid");
  add("reserved", "Reserved by PyTorch", fields.RESERVED, "ink2", 1.5, "solid");
  add("active", byStep ? "Active, highest in step" : "Active", fields.ACTIVE, "ink2", 1, "dot");
  add("allocated", byStep ? "Allocated, highest in step" : "Allocated", fields.ALLOCATED, "ink", 1.5, "solid");
  if (byStep) add("held", "Allocated at step end", HELD, "ink", 1, "dash");
  return lines;
}

/**
 * @param {Scene} scene
 * @param {Table} rows
 * @returns {TimelineModel["strips"]}
 */
function stripsOf({ view, steps, range }, rows) {
  const byStep = view.xKind === "step";
  const table = byStep ? rows : takeRows({ ...steps, x: steps.t }, pickRows({ ...steps, x: steps.t }, range[0], range[1], fields.STEP_DURATION, fields.STEP_DURATION, 500));
  const durations = table.columns[fields.STEP_DURATION];
  const counts = rows.columns[fields.DEVICE_ALLOCATIONS] ?? [];
  /** @type {{x: number[], y: number[], width: number}} */
  const allocations = { x: [], y: [], width: Math.max(byStep ? 1 : 0.1, (range[1] - range[0]) / 400) };
  for (let i = 1; i < counts.length; i++) {
    const calls = counts[i] - counts[i - 1];
    if (calls > 0 && rows.x[i] >= range[0] && !beginsLife(rows, i)) {
      allocations.x.push(rows.x[i]);
      allocations.y.push(byStep ? calls / Math.max(1, rows.x[i] - rows.x[i - 1]) : calls);
    }
  }
  return {
    stepTime: durations?.some(known) ? { x: table.x, y: durations.map((us) => us / 1000) } : null,
    allocations: counts.some(known) ? allocations : null,
  };
}

/**
 * @param {Scene} scene
 * @param {Table} source
 * @returns {Zone[]}
 */
function gapZones({ view, range, samplesLost, samples }, source) {
  const [from, to] = rowsBetween(source, range[0], range[1]);
  const shown = takeRows({ ...source, columns: {} }, Array.from({ length: to - from }, (_, i) => from + i));
  const gaps = view.xKind === "step" ? missingSteps(shown) : silences(shown);
  // Losses are counted over the whole run: they belong to a hole only where there is just one.
  const sole = view.xKind === "time" && gaps.length === 1 && samplesLost > 0 && silences(samples).length === 1;
  return gaps.map((gap) => ({
    x0: gap.x0,
    x1: gap.x1,
    quiet: false,
    text: sole
      ? `${plural(samplesLost, "sample")} lost`
      : known(gap.missing)
        ? `${plural(gap.missing, "step")} missing`
        : view.xKind === "time"
          ? `no samples for ${age(gap.x1 - gap.x0)}`
          : "steps missing",
  }));
}
