// What the top of every page of a run says, from what is known at this moment. Pure.

import * as fields from "./fields.js";
import { growthOf, quantile } from "./growth.js";
import { known } from "./format.js";
import { limitOf } from "./limits.js";
import { newestLifeFrom, numberOf } from "./numbering.js";
import { outsideOf, peakIn, peakOf } from "./peaks.js";
import { rankRows, worstRank } from "./ranks-model.js";
import { highest, lastKnown } from "./series.js";

/** @typedef {import("./messages.js").Run} Run */
/** @typedef {import("./messages.js").Rank} Rank */
/** @typedef {import("./series.js").Table} Table */
/** @typedef {import("./data/rank-data.js").RankData} RankData */
/** @typedef {import("./data/rank-matrix.js").RankMatrix} RankMatrix */

/**
 * @typedef {object} Summary
 * @property {Rank | null} rank the rank that is shown, null for all
 * @property {import("./limits.js").Limit} limit
 * @property {import("./verdict.js").Peak | null} peak
 * @property {import("./ranks-model.js").RankRow[]} rows
 * @property {import("./verdict.js").WorstRank | null} worst
 * @property {number | null} firstStep number of the first step of the newest process
 * @property {number} samplesLost
 * @property {number} samplesReceived
 * @property {number | null} rate_hz
 * @property {number | null} cost highest fraction of a core over the ranks that are shown
 */

/**
 * @param {Run} run
 * @param {number | null} shown
 * @param {RankData | null} data
 * @param {RankMatrix | null} matrix
 * @param {ReadonlySet<number>} [accused] ranks that have a finding of their own
 * @returns {Summary}
 */
export function summarize(run, shown, data, matrix, accused = new Set()) {
  const ranks = run.ranks ?? [];
  const rows = run.world_size > 1 ? rankRows(run, matrix, accused) : [];
  const worst = rows.length ? worstRank(rows) : null;
  const rank = shown === null ? null : (ranks.find((one) => one.rank === shown) ?? null);
  const bounding = rank ?? ranks.find((one) => one.rank === worst?.rank) ?? ranks[0];
  const limit = limitOf(bounding, rank && data ? outsideOf(data.samples.whole()) : null, (rank && data?.device) ?? null);
  if (!known(limit.bytes) && known(data?.device)) limit.bytes = lastKnown(data.samples.whole().columns[fields.DEVICE_TOTAL]);
  else if (!known(limit.bytes)) limit.bytes = run.device_total_bytes;
  const concerned = rank ? [rank] : ranks;
  const statuses = concerned.map((one) => one.status).filter((status) => status !== null);
  const worst_peak = worst && rows[0] ? rows.find((row) => row.rank === worst.rank)?.peak : null;
  const steps = data?.steps.whole();
  const first = steps?.x.length ? numberOf(steps, newestLifeFrom(steps)) : shown === null ? firstOfLives(ranks) : Infinity;
  return {
    rank,
    limit,
    rows,
    worst,
    peak: data && steps ? peakOf(steps, data.samples.whole()) : known(worst_peak) ? { used: worst_peak, usedKnown: true, step: null } : null,
    firstStep: Number.isFinite(first) ? first : null,
    samplesLost: concerned.reduce((sum, one) => sum + (one.samples_lost || 0), 0),
    samplesReceived: concerned.reduce((sum, one) => sum + (one.samples_received || 0), 0),
    rate_hz: statuses.length ? Math.min(...statuses.map((status) => status.rate_hz)) : null,
    cost: statuses.length ? Math.max(...statuses.map((status) => status.cost_fraction)) : null,
  };
}

/**
 * The first step that was seen of every rank as it is now.
 * @param {Rank[]} ranks
 */
function firstOfLives(ranks) {
  const firsts = ranks.map((rank) => rank.lives?.at(-1)?.first_step);
  return ranks.length > 0 && firsts.every(known) ? Math.max(...firsts.map(Number)) : Infinity;
}

/**
 * @typedef {object} StepFacts
 * @property {boolean} isFurther of a device of which there are only samples
 * @property {boolean} bySteps false where no optimizer step was seen: figures are those of samples
 * @property {number | null} allocatedPeak highest known moment of the last step
 * @property {{value: number, step: number, isEarlier: boolean} | null} largest
 * @property {number | null} reserved
 * @property {number | null} used at the end of the last step
 * @property {number | null} quietSteps steps since memory was last taken from the device
 * @property {import("./growth.js").Growth | null} growth over the rows given
 * @property {number | null} stepTime_s median of the last 20
 * @property {number | null} slow_s 95 % of the last 200 steps are faster
 * @property {number | null} retries
 * @property {number | null} cached returnable at the end of the last step
 * @property {number | null} activePeak highest need of the last 20 steps
 */

/**
 * @param {RankData} data
 * @param {Table} steps rows that are shown
 * @param {Table} high the highest known moment of each step
 * @returns {StepFacts}
 */
export function stepFacts(data, steps, high) {
  const all = data.steps.whole();
  const { columns } = all;
  const samples = data.samples.whole();
  const last = (/** @type {string} */ name) => lastKnown(columns[name]) ?? lastKnown(samples.columns[name]);
  const largest = highest(all.x.map((_, i) => peakIn(all, i, fields.PEAK_ALLOCATED, fields.ALLOCATED_PEAK))) ?? highest(samples.columns[fields.ALLOCATED]);
  const bySteps = high.columns[fields.ALLOCATED].some(known);
  const newest = newestLifeFrom(all);
  const since = newestLifeFrom(steps);
  const durations = columns[fields.STEP_DURATION].slice(newest).slice(-200);
  const median_us = quantile(durations.slice(-20), 0.5);
  const slow_us = quantile(durations, 0.95);
  const reserved = last(fields.RESERVED);
  const active = last(fields.ACTIVE) ?? last(fields.ALLOCATED);
  const stranded = last(fields.INACTIVE_SPLIT);
  const outside = outsideOf(samples);
  const used_at_end = known(reserved) && known(outside) ? reserved + outside : last(fields.DEVICE_USED);
  return {
    isFurther: known(data.device),
    bySteps,
    allocatedPeak: bySteps ? lastKnown(high.columns[fields.ALLOCATED]) : lastKnown(samples.columns[fields.ALLOCATED]),
    largest: largest ? { value: largest.value, step: bySteps ? numberOf(all, largest.index) : NaN, isEarlier: bySteps && largest.index < newest } : null,
    reserved,
    used: used_at_end ?? reserved,
    quietSteps: stepsSinceChange(all.x.slice(newest), columns[fields.DEVICE_ALLOCATIONS]?.slice(newest)),
    // A process that began anew warms up anew; what it reaches is no growth over the one before.
    growth: growthOf(steps.x.slice(since).map((_, i) => numberOf(steps, since + i)), (steps.columns[fields.ALLOCATED] ?? []).slice(since)),
    stepTime_s: known(median_us) ? median_us / 1e6 : null,
    slow_s: known(slow_us) ? slow_us / 1e6 : null,
    retries: last(fields.RETRIES),
    cached: known(reserved) && known(active) ? Math.max(0, reserved - active - (stranded ?? 0)) : null,
    activePeak: highest(high.columns[fields.ACTIVE].slice(-20))?.value ?? null,
  };
}

/**
 * @param {number[]} x
 * @param {number[] | undefined} counter
 */
function stepsSinceChange(x, counter) {
  if (!counter) return null;
  let i = counter.length - 1;
  while (i >= 0 && !known(counter[i])) i--;
  if (i < 1) return null;
  const end = i;
  while (i > 0 && (counter[i - 1] === counter[end] || !known(counter[i - 1]))) i--;
  return x[end] - x[i];
}
