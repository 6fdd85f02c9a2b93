// The sentence over the map: does a request of this size find a place? Pure.

import { known, sizeText } from "../format.js";

/** @typedef {import("../verdict.js").Verdict} Verdict */
/** @typedef {import("./fits.js").Fit} Fit */
/** @typedef {import("./map-facts.js").MapFacts} MapFacts */

/**
 * @param {object} seen
 * @param {number} seen.request  bytes
 * @param {boolean} seen.isTyped  else it is as large as the largest block
 * @param {Fit} seen.fit
 * @param {MapFacts} seen.facts
 * @param {number | null} seen.room  left on the device
 * @param {number | null} seen.limit_bytes
 * @param {boolean} seen.isExpandable
 * @param {string} seen.asOf  "" while the map is live, else words in front: "Last known: "
 * @returns {Verdict}
 */
export function mapVerdict({ request, isTyped, fit, facts, room, limit_bytes, isExpandable, asOf }) {
  const asked = isTyped ? `A request of ${sizeText(request)}` : `Another block like the largest, ${sizeText(request)},`;
  const { severity, sentence } = headline(asked, fit, facts, room);
  const said = asOf ? asOf + sentence[0].toLowerCase() + sentence.slice(1) : sentence;
  return { severity: asOf ? "quiet" : severity, key: `map ${fit.kind} ${asOf !== ""}`, sentence: said, second: evidence(facts, room, limit_bytes, fit, isExpandable) };
}

/**
 * @param {string} asked
 * @param {Fit} fit
 * @param {MapFacts} facts
 * @param {number | null} room
 * @returns {{severity: Verdict["severity"], sentence: string}}
 */
function headline(asked, fit, facts, room) {
  switch (fit.kind) {
    case "block":
      return { severity: "ok", sentence: `${asked} fits into a free block of ${sizeText(fit.place ? fit.place.segment.sizes[fit.place.index] : null)}.` };
    case "grow":
      return { severity: "ok", sentence: `${asked} fits: an expandable segment grows by ${sizeText(fit.needs)}; ${sizeText(room)} are left.` };
    case "segment":
      return { severity: "ok", sentence: `${asked} takes a new segment of ${sizeText(fit.needs)}; ${sizeText(room)} are left.` };
    case "flush":
      return { severity: "warn", sentence: `${asked} fits only after cached segments went back to the device.` };
    case "nowhere":
      return { severity: "warn", sentence: `${asked} fits nowhere: the largest piece is ${sizeText(largestPiece(facts, room))}, of ${sizeText(facts.free + (room ?? 0))} free.` };
    default:
      return { severity: "info", sentence: `${asked} fits into no free block; what the device has left is not known.` };
  }
}

/**
 * The largest request that would find a place without a flush.
 * @param {MapFacts} facts
 * @param {number | null} room
 */
export function largestPiece(facts, room) {
  const block = facts.largestFree ? facts.largestFree.segment.sizes[facts.largestFree.index] : 0;
  return Math.max(block, room ?? 0);
}

/**
 * @param {MapFacts} facts
 * @param {number | null} room
 * @param {number | null} limit_bytes
 * @param {Fit} fit
 * @param {boolean} isExpandable
 */
function evidence(facts, room, limit_bytes, fit, isExpandable) {
  const pieces = facts.strandedPieces === 1 ? "1 piece" : `${facts.strandedPieces.toLocaleString("en-US")} pieces`;
  const parts = [facts.stranded > 0 ? `${sizeText(facts.stranded)} lie between live blocks in ${pieces}` : "Nothing free lies between live blocks"];
  if (facts.cached > 0) parts.push(`${sizeText(facts.cached)} are cached and could be returned`);
  if (known(room)) parts.push(`${sizeText(room)} are left${known(limit_bytes) ? ` of the ${sizeText(limit_bytes)} limit` : " on the device"}`);
  const remedy = fit.kind === "nowhere" && facts.stranded > 0 && !isExpandable ? " Expandable segments can join free pieces." : "";
  return `${parts.join(", ")}.${remedy}`;
}
