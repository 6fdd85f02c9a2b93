// Ranks side by side: who has the least left, who stands out, and the picture of all together. Pure.

import { envelope, outliers } from "./data/rank-matrix.js";
import { known, tableUnit } from "./format.js";
import { limitOf } from "./limits.js";
import { headroomSeverity } from "./run-state.js";

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./messages.js").Rank} Rank */
/** @typedef {import("./data/rank-matrix.js").RankMatrix} RankMatrix */
/** @typedef {{rank: number, info: Rank, limit: number | null, peak: number | null, free: number | null, isOutlier: boolean}} RankRow */

/**
 * Every rank with its head-room at the peak so far, the least first.
 * @param {Run} run
 * @param {RankMatrix | null} matrix
 * @param {ReadonlySet<number>} [accused] ranks that have a finding of their own
 * @returns {RankRow[]}
 */
export function rankRows(run, matrix, accused = new Set()) {
  const rows = (run.ranks ?? []).map((info) => {
    const limit = limitOf(info).bytes;
    const peak = matrix?.rows.get(info.rank)?.peak ?? null;
    return { rank: info.rank, info, limit, peak, free: known(limit) && known(peak) ? Math.max(0, limit - peak) : null, isOutlier: false };
  });
  const standing_out = outliers(rows.map(({ rank, free, limit }) => ({ rank, free: free ?? NaN, limit })));
  const tight = rows.filter((row) => ["crit", "warn"].includes(headroomSeverity(row.free, row.limit) ?? ""));
  // Ranks with little left stand out as well, as long as they are the few.
  const few = tight.length <= Math.max(1, rows.length / 8) ? tight : [];
  for (const row of rows) row.isOutlier = standing_out.has(row.rank) || accused.has(row.rank) || few.includes(row);
  return rows.sort((a, b) => (a.free ?? Infinity) - (b.free ?? Infinity) || a.rank - b.rank);
}

/**
 * @param {RankRow[]} rows sorted
 * @returns {import("./verdict.js").WorstRank | null}
 */
export function worstRank(rows) {
  const [first, ...others] = rows.filter((row) => known(row.free));
  if (!first || !known(first.free)) return null;
  const frees = others.map((row) => row.free).filter(known);
  return { rank: first.rank, free: first.free, ranks: rows.length, heard: frees.length + 1, least: frees.length ? Math.min(...frees) : null, most: frees.length ? Math.max(...frees) : null };
}

/**
 * Least to most of all ranks, the median, and the rank that is worst off.
 * @param {import("./memory-model.js").Scene} scene
 * @param {RankMatrix} matrix
 * @returns {import("./charts/timeline.js").TimelineModel}
 */
export function allRanksPicture(scene, matrix) {
  const { t, used } = matrix.picture(240);
  const bounds = envelope(used);
  const [worst] = [...matrix.rows].sort((a, b) => b[1].peak - a[1].peak);
  const highest = worst?.[1].peak ?? 0;
  // Of the line that is drawn, or none.
  const evidence = worst && scene.evidence?.ranks.includes(worst[0]) ? scene.evidence : null;
  return {
    xKind: "time",
    range: scene.range,
    origin_ns: scene.origin_ns,
    unit: tableUnit(scene.limit_bytes ?? highest),
    limit: known(scene.limit_bytes) ? { bytes: scene.limit_bytes, label: scene.limitLabel, dashed: scene.limitDashed } : null,
    highest,
    floor: 0,
    x: t,
    layers: null,
    lines: null,
    envelope: worst ? { ...bounds, worst: used.get(worst[0]) ?? [], worstRank: worst[0], ...(evidence ? { severity: evidence.severity } : {}) } : null,
    columns: null,
    strips: { stepTime: null, allocations: null },
    freeText: null,
    numbering: [],
    bands: scene.bands ?? [],
    parts: [],
    cuts: scene.cuts ?? [],
    marks: scene.marks,
    zones: scene.silentZones,
    emulated: scene.emulated,
    dimmed: scene.dimmed,
    evidence,
    accused: null,
    tops: worst ? (used.get(worst[0]) ?? []) : [],
  };
}
