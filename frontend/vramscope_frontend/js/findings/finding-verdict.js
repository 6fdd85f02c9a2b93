// The first sentence of a run where something was found: the most urgent finding speaks, what else is
// wrong follows as "Also:". Pure.

import { findingGlyph } from "../findings.js";
import { age, known } from "../format.js";
import { capital, whereText } from "./card-words.js";

/** @typedef {import("./messages.js").Finding} Finding */
/** @typedef {import("../verdict.js").Verdict} Verdict */
/** @typedef {import("../glyphs.js").Severity} Severity */

/** @type {Record<Severity, number>} */
const WEIGHT = { crit: 0, warn: 1, info: 2, quiet: 2, ok: 3 };

/** Kinds of findings that are about what is left of the device. */
const OF_HEADROOM = ["near_oom", "oom"];

/** Whether a finding may make the sentence: what is only worth knowing does not. @param {Finding} finding */
export function speaks(finding) {
  return finding.severity !== "info" || finding.stage === "suspected";
}

/**
 * @param {Verdict} plain what is said without findings
 * @param {object} seen
 * @param {Finding[]} seen.findings that the run shows now, the most urgent first
 * @param {"live" | "stale" | "lost" | "ended" | "other"} seen.state
 * @param {number | null} seen.silent_s
 * @param {boolean} seen.ranksAreGone whether the plain sentence is about ranks that are gone
 * @param {number} seen.world_size
 * @returns {Verdict}
 */
export function withFindings(plain, { findings, state, silent_s, ranksAreGone, world_size }) {
  const speaking = findings.filter(speaks);
  const [first, second] = speaking;
  if (!first || state === "other") return plain;
  if (state === "live") return alive(plain, first, second, ranksAreGone, world_size);
  if (state === "stale") return { ...plain, key: `stale-${first.id}`, sentence: `Last known: ${within(first.summary)}, ${age(silent_s)} ago.` };
  if (state === "lost") return { ...plain, key: `lost-${first.id}`, second: `${plain.second} Last known: ${first.summary}` };
  const oom = speaking.find((one) => one.kind === "oom" && !known(one.evidence.recovered_step));
  if (oom) return { severity: "crit", key: `oom-${oom.id}`, sentence: oom.summary, second: [oom.detail, plain.when].filter(Boolean).join(" ") || plain.second };
  return { ...plain, key: `${plain.key}-${first.id}`, severity: plain.severity === "ok" ? "info" : plain.severity, second: [plain.second, `Found in it: ${first.summary}`].join(" ") };
}

/**
 * @param {Verdict} plain
 * @param {Finding} first
 * @param {Finding | undefined} second
 * @param {boolean} ranksAreGone
 * @param {number} world_size
 * @returns {Verdict}
 */
function alive(plain, first, second, ranksAreGone, world_size) {
  const found = findingGlyph(first);
  // That it ran out says more than that nothing was left, however mild it was in the end.
  const saysWhy = !ranksAreGone && OF_HEADROOM.includes(first.kind) && WEIGHT[found] <= WEIGHT.warn && WEIGHT[plain.severity] < WEIGHT[found];
  const severity = saysWhy ? plain.severity : found;
  // Of equals: ranks that are gone come first, head-room comes last.
  const ahead = ranksAreGone ? WEIGHT[severity] < WEIGHT[plain.severity] : WEIGHT[severity] <= WEIGHT[plain.severity];
  if (!ahead) return { ...plain, second: `Also: ${first.summary}` };
  const plainIsUrgent = WEIGHT[plain.severity] <= WEIGHT.warn && plain.key !== "warm-up" && (ranksAreGone || !OF_HEADROOM.includes(first.kind));
  const others = [second && second.severity !== "info" ? second.summary : "", plainIsUrgent ? plain.sentence : ""].filter(Boolean);
  const where = world_size > 1 && first.ranks.length > 0 && !/\b[Rr]anks?\b/.test(first.summary) ? `${capital(whereText(first, world_size))}${first.ranks.length === 1 ? ` of ${world_size}` : ""}. ` : "";
  const also = others.length && WEIGHT[severity] <= WEIGHT.warn ? `Also: ${others[0]}` : "";
  // One idea: what to do, unless something else is as wrong.
  return { severity, key: `finding-${first.id}-${first.severity}-${first.stage ?? ""}`, sentence: first.summary, second: where + (also || first.detail || plain.second), more: also && first.detail ? first.detail : "" };
}

/**
 * A sentence inside of another one.
 * @param {string} summary
 */
export function within(summary) {
  const text = summary.replace(/\.$/, "");
  // Only the first of two: what was forecast then is not a forecast now.
  const [sentence] = text.split(/\. (?=[A-Z])/);
  return /^[A-Z][a-z]/.test(sentence) ? sentence.charAt(0).toLowerCase() + sentence.slice(1) : sentence;
}
