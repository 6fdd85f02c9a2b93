// What a rank was doing: stretches of evaluation, of saving a checkpoint, of the user's own phases,
// as events tell them. A stretch comes twice, while it is open and when it is closed. Pure.

import { age, clock, count, duration, known } from "./format.js";

/** @typedef {import("./messages.js").RunEvent} RunEvent */
/** @typedef {"eval" | "checkpoint" | "wait" | "user"} BandKind */
/** @typedef {{rank: number, name: string, kind: BandKind, start_ns: number, end_ns: number | null, start_step: number | null, end_step: number | null, code: number | null, count: number}} Stretch */
/** Along the axis of a chart. @typedef {{x0: number, x1: number, name: string, kind: BandKind, title: string}} Band */

const MOST = 4000;
/** @type {Record<string, string>} */
const NAMES = { data_wait: "waiting for data" };
/** @type {Record<string, BandKind>} */
const KINDS = { eval: "eval", checkpoint: "checkpoint", data_wait: "wait" };

/** Stretches of all ranks that were heard of. */
export class PhaseLog {
  constructor() {
    /** @type {Map<string, Stretch>} */
    this.stretches = new Map();
    this.version = 0;
  }

  /** @param {RunEvent[]} events */
  take(events) {
    for (const event of events) {
      const stretch = stretchOf(event);
      if (!stretch) continue;
      const key = `${event.rank}/${event.data.id}/${stretch.start_ns}`;
      // An answer that was overtaken by the feed must not open a stretch again.
      if (known(this.stretches.get(key)?.end_ns) && stretch.end_ns === null) continue;
      this.stretches.set(key, stretch);
      this.version++;
    }
    if (this.stretches.size <= MOST * 1.25) return;
    const sorted = [...this.stretches].sort(([, a], [, b]) => a.start_ns - b.start_ns);
    for (const [key] of sorted.slice(0, sorted.length - MOST)) this.stretches.delete(key);
  }

  /**
   * Oldest first, longer before the shorter ones within them.
   * @param {number} rank
   */
  of(rank) {
    return [...this.stretches.values()].filter((one) => one.rank === rank).sort((a, b) => a.start_ns - b.start_ns || (b.end_ns ?? Infinity) - (a.end_ns ?? Infinity));
  }
}

/**
 * @param {RunEvent} event
 * @returns {Stretch | null}
 */
function stretchOf({ kind, rank, step, data }) {
  // Training is what is left: only what interrupts it is drawn.
  if (kind !== "phase" || !known(rank) || !known(data.start_ns) || data.phase === "train") return null;
  const name = String(data.phase);
  return { rank, name: NAMES[name] ?? name, kind: KINDS[name] ?? "user", start_ns: data.start_ns, end_ns: data.end_ns ?? null, start_step: step, end_step: data.end_step ?? step, code: data.code ?? null, count: data.count ?? 1 };
}

/**
 * Stretches along an axis; one that is open goes on to the end of what is known.
 * @param {Stretch[]} stretches
 * @param {number} origin_ns
 * @param {(t: number) => number} xOf place of a time on the axis, in seconds since the origin
 * @param {number} last_t end of what is known, in the same seconds
 * @returns {Band[]}
 */
export function bandsOf(stretches, origin_ns, xOf, last_t) {
  return stretches.flatMap((one) => {
    const t0 = (one.start_ns - origin_ns) / 1e9;
    const t1 = known(one.end_ns) ? (one.end_ns - origin_ns) / 1e9 : Math.max(t0, last_t);
    const [x0, x1] = [xOf(t0), xOf(t1)];
    return Number.isFinite(x0) && Number.isFinite(x1) ? [{ x0, x1: Math.max(x0, x1), name: one.name, kind: one.kind, title: `${clock(one.start_ns)}: ${stretchText(one)}` }] : [];
  });
}

/**
 * "eval, 12.4 s, steps 500 to 540".
 * @param {Stretch} one
 */
export function stretchText(one) {
  const steps = known(one.start_step) && known(one.end_step) && one.end_step > one.start_step ? `, ${count(one.end_step - one.start_step)} steps` : "";
  const times = one.count > 1 ? `, ${count(one.count)} times` : "";
  return `${one.name}${known(one.end_ns) ? `, ${duration((one.end_ns - one.start_ns) / 1e9)}` : ", still running"}${steps}${times}`;
}

/** Names of the codes in the series "phase"; others are the user's own and come with their events. */
const CODES = ["train", "eval", "checkpoint", NAMES.data_wait];

/**
 * @param {Stretch[]} stretches
 * @param {number | null | undefined} code
 */
function nameOfCode(stretches, code) {
  if (!known(code)) return null;
  return CODES[code] ?? stretches.findLast((one) => one.code === code)?.name ?? "another phase";
}

/**
 * What a rank was doing at a moment, the innermost first. Stretches that were too short or too many
 * to be told are known by the code of the sample only.
 * @param {Stretch[]} stretches
 * @param {number} time_ns
 * @param {number | null} code
 * @returns {string | null} null where nothing is known of phases
 */
export function phaseAt(stretches, time_ns, code) {
  const within = stretches.filter((one) => one.start_ns <= time_ns && (one.end_ns ?? Infinity) > time_ns).slice(-3);
  if (within.length === 0) return nameOfCode(stretches, code) ?? (stretches.length ? CODES[0] : null);
  return within.reverse().map((one) => (known(one.end_ns) ? `${one.name} (${duration((one.end_ns - one.start_ns) / 1e9)})` : `${one.name} (for ${age((time_ns - one.start_ns) / 1e9)})`)).join(" in ");
}

/**
 * What happened between two step ends.
 * @param {Stretch[]} stretches
 * @param {number} from_ns
 * @param {number} to_ns
 * @param {boolean} isKnown whether phases are known at all
 */
export function phasesWithin(stretches, from_ns, to_ns, isKnown) {
  const within = stretches.filter((one) => one.start_ns < to_ns && (one.end_ns ?? Infinity) > from_ns);
  if (within.length === 0) return isKnown || stretches.length ? CODES[0] : null;
  return `${CODES[0]}, ${within.slice(-3).map((one) => `${one.name} ${duration((Math.min(one.end_ns ?? to_ns, to_ns) - Math.max(one.start_ns, from_ns)) / 1e9)}`).join(", ")}`;
}
