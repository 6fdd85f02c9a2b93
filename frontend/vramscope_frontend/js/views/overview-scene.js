// Everything that one picture of the overview is made of: rows, limit, marks, holes, evidence.

import { DEVICE_PROCESS, RESERVED } from "../fields.js";
import { floorAtOnset } from "../findings/accusation.js";
import { evidenceOf, stretched } from "../findings/growth-evidence.js";
import { findingHappenings } from "../findings/happenings.js";
import { age, count, known } from "../format.js";
import { happenings, marksOf, turnings } from "../marks.js";
import { shownRange } from "../memory-view.js";
import { deviceText, devicesText } from "../limits.js";
import { numberAt, stretchesOf, xOfMoment } from "../numbering.js";
import { bandsOf } from "../phases.js";
import { turnsOf, turnText } from "../restarts.js";
import { silence_s } from "../run-state.js";
import { emptyTable, lastKnown, xAtTime } from "../series.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../memory-view.js").MemoryView} MemoryView */

const NOTHING = emptyTable([]);

/**
 * @param {RunPage} page
 * @param {MemoryView} view
 * @param {import("../findings/messages.js").Finding | null} finding whose evidence is drawn
 * @returns {Omit<NonNullable<ReturnType<import("./memory-panel.js").SceneSource>>, "rangeLeadsTo"> | null}
 */
export function sceneOf(page, view, finding) {
  const { session, app } = page;
  const run = session.run;
  const summary = page.summary;
  if (!run || !summary) return null;
  const data = session.rankData;
  const seen = view.rank === null ? { ...view, xKind: /** @type {const} */ ("time") } : view;
  const rows = data ? data[seen.xKind === "step" ? "steps" : "samples"].whole() : matrixTimes(session.matrix);
  const pill = page.pill;
  // Of a rank that is gone nothing comes any more, however live the others are.
  const gone = summary.rank && summary.rank.state !== "live" && run.state === "live" ? summary.rank : null;
  const lost = pill.state === "lost" || gone?.state === "lost";
  const silent = lost || gone !== null || pill.state === "stale" || pill.state === "disconnected";
  const last = rows.x.at(-1) ?? 0;
  const silent_s = silence_s(gone ? { ...run, last_seen_ns: gone.last_seen_ns } : run, app.clock.now_ns()) ?? 0;
  const probe = shownRange(seen, rows);
  const quiet = silent ? Math.min((probe[1] - probe[0]) * 0.16, seen.xKind === "time" ? silent_s : silent_s * stepsPerSecond(rows)) : 0;
  const steps = data?.steps.whole() ?? NOTHING;
  const evidence = finding && evidenceOf(finding, { steps, rows, xKind: seen.xKind, isLive: run.state === "live" && !silent });
  const range = shownRange(seen, rows, Math.max(last + quiet, seen.window === "forecast" ? stretched(probe, evidence?.wedge ?? null) : last));
  const whole = data?.[seen.xKind === "step" ? "steps" : "samples"];
  const placeOfTime = (/** @type {number} */ t) => (seen.xKind === "time" ? t : xAtTime(steps, t));
  return {
    session,
    ranks: run.world_size,
    isGone: gone !== null,
    view: seen,
    steps: data ? data.steps.view(seen.xKind === "step" ? range[0] : -Infinity) : NOTHING,
    high: data && seen.xKind === "step" ? data.high(range[0]) : NOTHING,
    samples: data ? data.samples.view(seen.xKind === "time" ? range[0] : -Infinity) : NOTHING,
    range,
    limit_bytes: summary.limit.bytes,
    limitLabel: summary.limit.label,
    limitDashed: summary.limit.dashed,
    origin_ns: run.started_ns,
    emulated: run.emulated,
    dimmed: silent,
    evidence,
    onset_bytes: floorAtOnset(steps, evidence?.onset_t ?? null),
    marks: marksOf(happenings(session.store.state.events, session.store.state.commands, run.world_size, [...turnings(run), ...findingHappenings(session.store.state.findings)]).filter((one) => one.rank === null || view.rank === null || one.rank === view.rank), seen.xKind, run.started_ns, (t) => xAtTime(steps, t), (step, t) => xOfMoment(steps, step, t)),
    bands: bandsOf(session.phases.of(view.rank ?? session.firstRank), run.started_ns, placeOfTime, data?.samples.last ?? rows.t.at(-1) ?? 0),
    cuts: cutsOf(run, seen, steps),
    samplesLost: summary.samplesLost,
    isWhole: data?.isWhole ?? true,
    silentZones: silent && last < range[1] ? [{ x0: last, x1: range[1], quiet: true, text: lost ? `silent since ${seen.xKind === "step" ? `step ${count(numberAt(stretchesOf(steps), last))}` : `${age(silent_s)} ago`}` : "no data" }] : [],
    devices: summary.rank?.devices ?? [],
    rows: summary.rows,
    // What lies beside PyTorch is told of the device that is watched in full.
    status: view.device === null ? (summary.rank?.status ?? null) : null,
    pid: summary.rank?.pid ?? null,
    context_bytes: contextNow(data?.samples.whole() ?? NOTHING),
    context: summary.rank ? deviceText(summary.rank, view.device) : devicesText(run),
    summary: `Memory over ${seen.xKind === "step" ? "steps" : "time"}: ${whole?.isEmpty ? "no data yet" : `${page.verdict?.sentence ?? ""}`}`,
  };
}

/**
 * Where another process took over: along the axis of steps the first place that is not the old one's.
 * @param {import("../messages.js").Run} run
 * @param {MemoryView} view
 * @param {import("../series.js").Table} steps
 * @returns {import("../charts/timeline.js").Cut[]}
 */
function cutsOf(run, view, steps) {
  const turns = turnsOf(run).filter((turn) => turn.kind === "restart" && (view.rank === null || turn.changes.some((one) => one.rank === view.rank)));
  const stretches = stretchesOf(steps);
  return turns.flatMap((turn) => {
    const life = turn.changes.find((one) => one.rank === view.rank)?.after.life;
    const x = view.xKind === "time" ? (turn.time_ns - run.started_ns) / 1e9 : stretches.find((one) => one.life === life)?.x;
    return x === undefined ? [] : [{ x: view.xKind === "step" ? x - 0.5 : x, text: turnText(turn, run.world_size) }];
  });
}

/**
 * What the driver counts to the process beyond what PyTorch holds, by the newest sample.
 * @param {import("../series.js").Table} samples
 */
function contextNow({ columns }) {
  const held = lastKnown(columns[DEVICE_PROCESS]);
  const reserved = lastKnown(columns[RESERVED]);
  return known(held) && known(reserved) ? Math.max(0, held - reserved) : null;
}

/** @param {import("../data/rank-matrix.js").RankMatrix | null} matrix */
function matrixTimes(matrix) {
  if (!matrix) return NOTHING;
  const { t } = matrix.picture(240);
  return { ...NOTHING, x: t, t };
}

/** @param {import("../series.js").Table} rows */
function stepsPerSecond(rows) {
  const end = rows.x.length - 1;
  const from = Math.max(0, end - 50);
  return end > from && rows.t[end] > rows.t[from] ? (rows.x[end] - rows.x[from]) / (rows.t[end] - rows.t[from]) : 1;
}
