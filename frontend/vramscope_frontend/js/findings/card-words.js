// The words of a finding's card: how much, who holds it, how sure, what would help. Pure.

import { count, known, percent, sizeText } from "../format.js";

/** @typedef {import("./messages.js").Finding} Finding */
/** @typedef {import("./messages.js").Culprit} Culprit */
/** @typedef {import("./messages.js").Remedy} Remedy */
/** @typedef {import("./messages.js").SourceLines} SourceLines */

/** As sure as this: the word "sure" alone would say more than is known. */
const CERTAIN = 0.995;

/**
 * "13.6 GiB in 4,502 tensors · explains 100 % of the growth · 97 % sure".
 * @param {Finding} finding
 */
export function sizeLine(finding) {
  const { evidence } = finding;
  const [first] = finding.culprits;
  // What was asked for is no size of what is wrong.
  const bytes = known(evidence.grown_bytes) ? evidence.grown_bytes : finding.kind === "oom" ? null : first?.bytes;
  const size = known(bytes) && bytes > 0 ? `${sizeText(bytes)}${known(evidence.tensors) ? ` in ${count(evidence.tensors)} ${evidence.tensors === 1 ? "tensor" : "tensors"}` : ""}` : "";
  const share = known(evidence.share) ? `explains ${percent(evidence.share)} of the growth` : "";
  return [size, share, sureText(finding)].filter(Boolean).join(" · ");
}

/** @param {Pick<Finding, "confidence" | "stage">} finding */
export function sureText({ confidence, stage }) {
  if (stage === "suspected") return "being made sure of";
  return known(confidence) && confidence < CERTAIN ? `${percent(confidence)} sure` : "";
}

/**
 * "train.py:56"; the whole path is for the title.
 * @param {Pick<Culprit, "file" | "line">} culprit
 */
export function placeText({ file, line }) {
  const name = file.split("/").at(-1) ?? file;
  return file ? `${name}${line > 0 ? `:${line}` : ""}` : "";
}

/**
 * From the name that a person knows to the tensor.
 * @param {Culprit} culprit
 */
export function chainText({ held_by = [] }) {
  return held_by.join(" › ");
}

/**
 * Lines around the guilty one, where they were sent.
 * @param {Finding} finding
 * @returns {SourceLines | null}
 */
export function sourceOf(finding) {
  const source = finding.culprits[0]?.source ?? finding.evidence.source;
  const isWhole = source && Array.isArray(source.lines) && source.lines.length > 0 && known(source.first_line) && known(source.line);
  return isWhole ? source : null;
}

/**
 * Facts that the verdict stands on.
 * @param {Finding} finding
 */
export function factsText({ evidence }) {
  const facts = Array.isArray(evidence.facts) ? evidence.facts.filter((fact) => typeof fact === "string") : [];
  return facts.slice(0, 3).join(" ");
}

/**
 * Lines behind a finding: each place once, with what its function is called.
 * @param {Finding} finding
 * @param {number} most
 */
export function placesOf({ culprits }, most) {
  const places = culprits.flatMap((one) => (one.file ? [{ text: placeText(one), path: `${one.file}${one.line > 0 ? `:${one.line}` : ""}`, within: one.function && one.function !== "<module>" ? one.function : "" }] : []));
  return places.filter((place, i) => places.findIndex((one) => one.path === place.path) === i).slice(0, most);
}

/**
 * Who holds what, each pair once.
 * @param {Finding} finding
 * @param {number} most
 */
export function holdersOf({ culprits }, most) {
  const holders = culprits.map((one) => ({ chain: chainText(one), tensors: (one.tensors ?? []).slice(0, 3).join(", ") })).filter((one) => one.chain || one.tensors);
  return holders.filter((holder, i) => holders.findIndex((one) => one.chain === holder.chain && one.tensors === holder.tensors) === i).slice(0, most);
}

/**
 * One line: what it gains, what it costs, what it does not do.
 * @param {Remedy} remedy
 */
export function remedyText({ why, predicted_bytes, cost }) {
  const sentence = (/** @type {string} */ text) => (text && !/[.!?]$/.test(text) ? `${text}.` : text);
  const amount = known(predicted_bytes) && predicted_bytes > 0 && !why.includes(sizeText(predicted_bytes)) ? `About ${sizeText(predicted_bytes)}.` : "";
  return [capital(sentence(why)), amount, cost ? `Cost: ${sentence(cost)}` : ""].filter(Boolean).join(" ");
}

/** @param {string} text */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * "rank 41", "3 ranks"; nothing where there is just one.
 * @param {Pick<Finding, "ranks">} finding
 * @param {number} world_size
 */
export function whereText({ ranks }, world_size) {
  if (world_size <= 1 || ranks.length === 0) return "";
  if (ranks.length === world_size) return `all ${world_size} ranks`;
  return ranks.length === 1 ? `rank ${ranks[0]}` : ranks.length <= 4 ? `ranks ${ranks.join(", ")}` : `${ranks.length} ranks`;
}

/**
 * @typedef {{text: string, isCode: boolean}} Piece
 */

/** Back-ticks, and places in a program: these are read letter by letter. */
const CODE = /`([^`]+)`|((?:[\w@.-]+\/)*[\w.-]+\.(?:py|pyx|ipynb):\d+)/g;

/**
 * A sentence in pieces of words and of code.
 * @param {string} text
 * @returns {Piece[]}
 */
export function piecesOf(text) {
  /** @type {Piece[]} */
  const pieces = [];
  let from = 0;
  for (const match of text.matchAll(CODE)) {
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), isCode: false });
    pieces.push({ text: match[1] ?? match[2], isCode: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isCode: false });
  return pieces;
}
