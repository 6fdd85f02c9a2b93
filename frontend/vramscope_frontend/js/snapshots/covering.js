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
 * The newest recording with most of its steps in the range, and the first of these steps.
 * @param {SnapshotInfo[]} snapshots newest first
 * @param {Shown} shown
 * @returns {{id: string, step: number} | null}
 */
export function coveringSnapshot(snapshots, shown) {
  let best = null;
  let most = 0;
  for (const info of snapshots) {
    if (info.state !== "complete" || (shown.rank !== null && info.rank !== null && info.rank !== shown.rank)) continue;
    const within = (info.steps ?? []).filter((end) => isWithin(end, shown));
    if (within.length > most) {
      most = within.length;
      best = { id: info.id, step: within[0][0] };
    }
  }
  return best;
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
