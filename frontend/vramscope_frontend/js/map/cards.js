// The rail beside the map: the block that is meant, and what fits now.

import { el } from "../dom.js";
import { count, duration, exactBytes, known, percent, plural, sizeText } from "../format.js";
import { roomOf } from "./fits.js";
import { ALLOCATED, FREE, PENDING } from "./map-state.js";
import { CATEGORIES, categoryName, streamName } from "./paints.js";
import { ownFrames, shortFrame, stackName } from "./stacks.js";

/** @typedef {import("./map-facts.js").MapFacts} MapFacts */
/** @typedef {import("./map-facts.js").Place} Place */
/** @typedef {import("./map-state.js").MapState} MapState */

/**
 * @param {[string, import("../dom.js").Child][]} facts
 * @param {string} [kind]
 */
const list = (facts, kind = "map-list") => el("dl", { class: kind }, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

/**
 * What a block is, in one or two words.
 * @param {Place} place
 */
export function kindOf({ segment, index }) {
  const state = segment.states[index];
  if (state === ALLOCATED) return categoryName(segment.categories[index]);
  if (state === PENDING) return "Freed, waiting for another stream";
  if (segment.isPrivate) return "Free in a private pool";
  return segment.isLive ? "Free between live blocks" : "Free, whole segment";
}

/**
 * A line for a list, a label or a screen reader.
 * @param {MapState} map
 * @param {Place} place
 */
export function blockLine(map, place) {
  const { segment, index } = place;
  const name = map.text(segment.owners[index]) || stackName(map.text(segment.stacks[index]));
  const many = segment.counts[index] > 1 ? `${count(segment.counts[index])} blocks, ` : "";
  return `${many}${sizeText(segment.sizes[index])}, ${kindOf(place)}${name ? `, ${name}` : ""}`;
}

/**
 * @param {MapState} map
 * @param {Place | null} place
 * @param {{sameStack: () => {blocks: number, bytes: number}, isLit: boolean, onLight: () => void, snapshotsPath: string, gone: string}} more
 */
export function blockCard(map, place, more) {
  if (!place) return [el("p", { class: "empty-line" }, more.gone || "Pick a block in the map, or go from one to the next with the arrow keys.")];
  const { segment, index } = place;
  const isFree = segment.states[index] === FREE;
  const swatch = el("i", { class: "swatch", "data-paint": isFree ? (segment.isLive || segment.isPrivate ? "stranded" : "cached") : segment.states[index] === PENDING ? "pending" : (CATEGORIES[segment.categories[index]] ?? CATEGORIES[0]) });
  const head = [el("p", { class: "map-size" }, sizeText(segment.sizes[index])), el("p", { class: "map-kind" }, swatch, `${kindOf(place)} · ${exactBytes(segment.sizes[index])}`)];
  if (segment.counts[index] > 1) return [...head, el("p", { class: "ink2" }, `${count(segment.counts[index])} blocks of this segment, shown as one: the map has too many to send each.`)];
  const pool = segment.isPrivate ? `private pool ${segment.pool}` : segment.isLarge ? "large pool" : "small pool";
  return [
    ...head,
    list([
      ...(isFree ? [] : /** @type {[string, string][]} */ ([["Requested", exactBytes(segment.requested[index])]])),
      ["Address", el("code", {}, `0x${(segment.address + segment.offsets[index]).toString(16)}`)],
      ["Offset in segment", sizeText(segment.offsets[index])],
      ["Segment", `${sizeText(segment.size)}${segment.isExpandable ? ", expandable" : ""}, ${pool}`],
      ...(segment.stream === 0 ? [] : /** @type {[string, string][]} */ ([["Stream", streamName(segment.stream)]])),
      ["Age", isFree ? "–" : ageText(map, place)],
      ...(isFree ? [] : /** @type {[string, string][]} */ ([["Tensor", map.text(segment.owners[index]) || "not known"]])),
    ]),
    ...(isFree ? [] : stackPart(map, place, more)),
  ];
}

/**
 * @param {MapState} map
 * @param {Place} place
 * @param {{sameStack: () => {blocks: number, bytes: number}, isLit: boolean, onLight: () => void, snapshotsPath: string}} more
 */
function stackPart(map, { segment, index }, more) {
  const stack = map.text(segment.stacks[index]);
  const title = el("p", { class: "map-title" }, "Allocated at");
  if (!stack) return [title, el("p", { class: "ink2" }, "No stack: memory history was not being recorded. ", el("a", { href: more.snapshotsPath }, "Record the next steps"), " to see where blocks come from.")];
  const { blocks, bytes } = more.sameStack();
  return [
    title,
    el("ol", { class: "map-stack" }, ...ownFrames(stack).map((line) => el("li", {}, el("code", { title: line }, shortFrame(line))))),
    el("button", { class: "button link", type: "button", "aria-pressed": String(more.isLit), click: more.onLight }, more.isLit ? "Show all blocks again" : `All ${count(blocks)} blocks of this stack, ${sizeText(bytes)}`),
  ];
}

/**
 * @param {MapState} map
 * @param {Place} place
 */
function ageText(map, { segment, index }) {
  const { head } = map;
  const since = segment.first_ms[index];
  if (!head || since < 0) return "since before the first look";
  const seconds = (head.time_ns - head.since_ns) / 1e9 - since / 1000;
  const steps = known(head.step) && segment.firstSteps[index] >= 0 ? `${plural(head.step - segment.firstSteps[index], "step")} · ` : "";
  return `${steps}${duration(Math.max(0, seconds))}`;
}

/**
 * @param {MapState} map
 * @param {MapFacts} facts
 * @param {(place: Place) => void} onPick
 */
export function fitsCard(map, facts, onPick) {
  const { head } = map;
  const room = head ? roomOf(head, facts.reserved) : null;
  const largest = facts.largestFree ? facts.largestFree.segment.sizes[facts.largestFree.index] : 0;
  const sizes = list([
    ["From a free block", el("b", {}, sizeText(largest))],
    ["With a new segment", el("b", {}, known(room) ? sizeText(room) : "not known")],
    ["Free between live blocks", sizeText(facts.stranded)],
    ["Whole segments and pages free", sizeText(facts.cached)],
    ...(facts.privateFree ? /** @type {[string, string][]} */ ([["Free in private pools", sizeText(facts.privateFree)]]) : []),
    ...(facts.pending ? /** @type {[string, string][]} */ ([["Waiting for another stream", sizeText(facts.pending)]]) : []),
    ["Fragmentation", facts.free ? percent(1 - largest / facts.free) : "–"],
  ]);
  const way = facts.largestFree ? neighbours(map, facts.largestFree, onPick) : [];
  return [sizes, ...way, el("p", { class: "ink3" }, "Fragmentation is the share of free memory outside the largest free block.")];
}

/**
 * @param {MapState} map
 * @param {Place} largest
 * @param {(place: Place) => void} onPick
 */
function neighbours(map, { segment, index }, onPick) {
  const side = (/** @type {string} */ name, /** @type {number} */ at) => {
    if (at < 0 || at >= segment.states.length) return el("li", {}, `${name}: end of the segment`);
    const place = { segment, index: at };
    const what = map.text(segment.owners[at]) || stackName(map.text(segment.stacks[at])) || kindOf(place);
    return el("li", {}, el("button", { class: "button link", type: "button", "data-key": `${segment.address + segment.offsets[at]}/${segment.sizes[at]}`, click: () => onPick(place) }, `${name}: ${what}`), el("span", { class: "number" }, sizeText(segment.sizes[at])));
  };
  return [el("p", { class: "map-title" }, "In the way of the largest free block"), el("ul", { class: "map-way" }, side("left", index - 1), side("right", index + 1))];
}
