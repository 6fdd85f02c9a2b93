// What of a finding is drawn into the chart: since when, how fast, until when, and what it accuses. Pure.

import { findingGlyph } from "../findings.js";
import { known, mibPerStep, sizeText, MIB, count } from "../format.js";
import { lowerBound } from "../series.js";
import { speaks } from "./finding-verdict.js";

/** @typedef {import("./messages.js").Finding} Finding */
/** @typedef {import("./messages.js").Forecast} Forecast */
/** @typedef {import("../series.js").Table} Table */
/** @typedef {import("../glyphs.js").Severity} Severity */
/** @typedef {import("../composition.js").LayerId} LayerId */

/**
 * @typedef {object} Wedge
 * @property {number} early on the axis
 * @property {number} late
 * @property {number | null} limit_bytes
 * @property {string[]} label the first line is the more important one
 */
/**
 * @typedef {object} Evidence
 * @property {string} id of the finding
 * @property {Severity} severity
 * @property {number | null} onset on the axis
 * @property {string} onsetText
 * @property {string} slopeText empty without a slope
 * @property {Wedge | null} wedge
 * @property {LayerId | null} layer that is accused
 * @property {number | null} onset_t seconds since the run started
 * @property {number[]} ranks that it is about; none: all
 */

/** A forecast is drawn from this confidence on, and for so long ahead. */
const LEAST_CONFIDENCE = 0.7;
const AHEAD_S = 24 * 3600;

/** What a kind accuses; memory that grows is a layer of its own. */
const ACCUSED = /** @type {Record<string, LayerId>} */ ({ leak: "grown", cycle_growth: "grown", retained_exception: "grown", retention: "grown", near_oom: "grown", fragmentation: "stranded", oversized_cache: "cached", other_process: "other", non_torch_memory: "context" });

/**
 * @param {unknown} forecast
 * @returns {Forecast | null} one that may be drawn
 */
export function drawableForecast(forecast) {
  const one = /** @type {Forecast | null | undefined} */ (forecast);
  return one && known(one.early_s) && known(one.late_s) && known(one.confidence) && one.confidence >= LEAST_CONFIDENCE && one.late_s < AHEAD_S && one.early_s >= 0 && one.late_s >= one.early_s ? one : null;
}

/**
 * Whether memory of the device grew, from a step on that is known: the chart shows it.
 * @param {Finding} finding
 */
export function hasGrown(finding) {
  return ACCUSED[finding.kind] === "grown" && known(sinceStep(finding)) && known(finding.evidence.slope_bytes_per_step);
}

/** The finding that the chart shows: the first one that grew. @param {Finding[]} present the most urgent first */
export function drawnFinding(present) {
  return present.find(hasGrown) ?? present.find((finding) => finding.severity !== "info" && finding.kind in ACCUSED) ?? null;
}

/** @param {Finding} finding */
export function sinceStep(finding) {
  const since = finding.since_step ?? finding.evidence.since_step;
  return known(since) ? since : null;
}

/**
 * @param {Finding} finding
 * @param {{steps: Table, rows: Table, xKind: "step" | "time", isLive: boolean}} axis `rows`: what is drawn
 * @returns {Evidence}
 */
export function evidenceOf(finding, { steps, rows, xKind, isLive }) {
  const { evidence } = finding;
  const since = sinceStep(finding);
  const onset_x = known(since) ? since + (finding.step_offset ?? 0) : null;
  const onset_t = onset_x === null ? null : timeOfStep(steps, onset_x);
  const onset = xKind === "step" ? onset_x : onset_t;
  const slope = evidence.slope_bytes_per_step;
  const forecast = isLive ? drawableForecast(evidence.forecast) : null;
  return {
    id: finding.id,
    severity: findingGlyph(finding),
    onset,
    onset_t,
    ranks: finding.ranks,
    onsetText: known(since) ? `step ${count(since)}` : "",
    slopeText: known(slope) && slope > 0 ? slopeText(slope, evidence.unit) : "",
    wedge: forecast && wedgeOf(forecast, finding, { steps, rows, xKind }),
    layer: speaks(finding) ? (ACCUSED[finding.kind] ?? null) : null,
  };
}

/**
 * @param {number} slope
 * @param {unknown} unit
 */
function slopeText(slope, unit) {
  const per = typeof unit === "string" && unit ? unit : "step";
  return slope >= MIB / 10 && slope < 1024 * MIB ? `${mibPerStep(slope)} MiB/${per}` : `+${sizeText(slope)}/${per}`;
}

/**
 * @param {Table} steps
 * @param {number} x
 */
function timeOfStep({ x: xs, t }, x) {
  return xs.length ? t[Math.min(lowerBound(xs, x), xs.length - 1)] : null;
}

/**
 * @param {Forecast} forecast
 * @param {Finding} finding
 * @param {{steps: Table, rows: Table, xKind: "step" | "time"}} axis
 * @returns {Wedge | null}
 */
function wedgeOf(forecast, finding, { steps, rows, xKind }) {
  const last = steps.x.at(-1);
  const last_t = steps.t.at(-1) ?? rows.t.at(-1);
  const offset = finding.step_offset ?? 0;
  // It counts from the step that was judged; the axis may have gone on since.
  const from = known(forecast.at_step) ? forecast.at_step + offset : last;
  const from_t = known(from) ? timeOfStep(steps, from) : null;
  const words = [`full in ${rangeText(forecast.early_s, forecast.late_s)}`];
  const inSteps = known(from) && known(forecast.early_steps) && known(forecast.late_steps) ? [from + forecast.early_steps, from + forecast.late_steps] : null;
  if (inSteps) words.push(`step ${count(inSteps[0] - offset)} to ${count(inSteps[1] - offset)}`);
  if (xKind === "step") {
    if (!inSteps || !known(last)) return null;
    return { early: Math.max(last, inSteps[0]), late: Math.max(last, inSteps[1]), limit_bytes: forecast.limit_bytes ?? null, label: words };
  }
  if (!known(last_t)) return null;
  return { early: Math.max(last_t, (from_t ?? last_t) + forecast.early_s), late: Math.max(last_t, (from_t ?? last_t) + forecast.late_s), limit_bytes: forecast.limit_bytes ?? null, label: words };
}

/** As the sentences of findings have it: in one unit, whole, and never narrower than it is known. */
const UNITS = /** @type {const} */ ([["s", 1, 99], ["min", 60, 99 * 60], ["h", 3600, Infinity]]);

/**
 * "26 to 34 min": a range, never one false-exact number.
 * @param {number} early_s
 * @param {number} late_s
 */
export function rangeText(early_s, late_s) {
  const [unit, seconds] = UNITS.find(([, , most]) => late_s <= most) ?? UNITS[2];
  const [early, late] = [Math.floor(early_s / seconds), Math.ceil(late_s / seconds)];
  if (early >= late) return `${late} ${unit}`;
  return early === 0 ? `less than ${late} ${unit}` : `${early} to ${late} ${unit}`;
}

/** How much longer than what is shown a forecast may make the axis. */
const STRETCH = 1.6;

/**
 * Where the axis ends so that a forecast is in the picture; data keep a good part of it.
 * @param {[number, number]} range of the data
 * @param {Wedge | null} wedge
 */
export function stretched([from, to], wedge) {
  if (!wedge || wedge.late <= to) return to;
  const air = 0.06 * (wedge.late - from);
  return Math.min(wedge.late + air, to + STRETCH * (to - from));
}

/**
 * Whether growth is too little of the axis to be seen from 0 on.
 * @param {Finding} finding
 * @param {number | null} limit_bytes
 */
export function isSmallOnAxis(finding, limit_bytes) {
  const { grown_bytes } = finding.evidence;
  return known(grown_bytes) && known(limit_bytes) && known(sinceStep(finding)) && grown_bytes < 0.1 * limit_bytes;
}
