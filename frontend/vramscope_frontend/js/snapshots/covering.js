// Which recording covers what the overview shows. Pure.

/** @typedef {import("../messages.js").SnapshotInfo} SnapshotInfo */

/**
 * @typedef {object} Shown
 * @property {number | null} rank null for all of them
 * @property {[number, number]} range
 * @property {"step" | "time"} xKind steps, or seconds since the run began
 * @property {number} started_ns
 * @property {(x: number) => number} numberAt what the step at a place of the axis is called
 */

/**
 * What of a range a recording holds.
 * @typedef {object} Covering
 * @property {string} id
 * @property {number} step the first that ends in the range
 * @property {number} last
 * @property {boolean} isWhole whether all of the range was recorded
 * @property {[number, number]} range_us what of it was recorded, in time since the epoch
 */

/**
 * The newest recording with most of its steps in the range.
 * @param {SnapshotInfo[]} snapshots newest first
 * @param {Shown} shown
 * @returns {Covering | null}
 */
export function coveringSnapshot(snapshots, shown) {
  let best = null;
  let most = 0;
  for (const info of snapshots) {
    if (info.state !== "complete" || (shown.rank !== null && info.rank !== null && info.rank !== shown.rank)) continue;
    const within = (info.steps ?? []).filter((end) => isWithin(end, shown));
    if (within.length > most) {
      most = within.length;
      best = coveringOf(info, within, shown);
    }
  }
  return best;
}

/**
 * A recording begins where the step before its first one ended.
 * @param {SnapshotInfo} info
 * @param {[number, number][]} within ends of its steps in the range
 * @param {Shown} shown
 * @returns {Covering}
 */
function coveringOf(info, within, { range: [from, to], xKind, started_ns, numberAt }) {
  const ends = info.steps ?? [];
  const first = ends[0];
  const last = ends[ends.length - 1];
  const length_us = ends.length > 1 ? (last[1] - first[1]) / (ends.length - 1) : 0;
  const began_us = first[1] - length_us;
  const timeOf = (/** @type {number} */ x) => (xKind === "time" ? started_ns / 1000 + x * 1e6 : timeAt(ends, numberAt(x), began_us));
  const range_us = /** @type {[number, number]} */ ([Math.round(timeOf(from)), Math.round(timeOf(to))]);
  const isWhole = xKind === "time" ? range_us[0] >= began_us && range_us[1] <= last[1] : numberAt(from) >= first[0] - 1 && numberAt(to) <= last[0];
  return { id: info.id, step: within[0][0], last: within[within.length - 1][0], isWhole, range_us: [Math.max(Math.round(began_us), range_us[0]), Math.min(last[1], range_us[1])] };
}

/**
 * When a place between two ends of steps was; before the first of them the beginning.
 * @param {[number, number][]} ends
 * @param {number} number
 * @param {number} began_us
 */
function timeAt(ends, number, began_us) {
  const next = ends.findIndex(([step]) => step >= number);
  if (next < 0) return ends[ends.length - 1][1];
  const [step, time_us] = ends[next];
  const [before, before_us] = next > 0 ? ends[next - 1] : [step - 1, began_us];
  return number <= before ? before_us : before_us + ((number - before) / (step - before)) * (time_us - before_us);
}

/**
 * @param {[number, number]} end of a step: its number, and when in microseconds
 * @param {Shown} shown
 */
function isWithin([step, time_us], { range: [from, to], xKind, started_ns, numberAt }) {
  if (xKind === "step") return step >= numberAt(from) && step <= numberAt(to);
  const seconds = (time_us * 1000 - started_ns) / 1e9;
  return seconds >= from && seconds <= to;
}
