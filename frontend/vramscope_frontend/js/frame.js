// This page inside another page, such as below the cell of a notebook. It has no session there:
// what it may do is what the token in the fragment of its own address may, and that is one run.

/** @typedef {{token: string, until_ms: number}} Frame */

const FRAME = "/frame/";
const PAGE = "/runs/";

/**
 * What the address says of a frame; null when it is the address of a page.
 * @param {string} pathname
 * @param {string} hash
 * @returns {Frame | null}
 */
export function frameOf(pathname, hash) {
  if (!pathname.startsWith(FRAME)) return null;
  const said = new URLSearchParams(hash.slice(1));
  const until_s = Number(said.get("until") || Number.NaN);
  return { token: said.get("token") ?? "", until_ms: Number.isFinite(until_s) ? until_s * 1000 : Infinity };
}

/**
 * Whether a frame has nothing left to ask with. An old notebook opens many of them at once, and a
 * server slows down whoever sends it wrong tokens.
 * @param {Frame} frame
 * @param {number} now_ms
 */
export function isOver(frame, now_ms) {
  return frame.token === "" || now_ms >= frame.until_ms;
}

/**
 * Address within the frame for an address within the page; null for what no frame may see.
 * @param {string} address
 */
export function framed(address) {
  return address.startsWith(PAGE) ? FRAME + address.slice(PAGE.length) : null;
}

/**
 * The reverse.
 * @param {string} pathname
 */
export function unframed(pathname) {
  return pathname.startsWith(FRAME) ? PAGE + pathname.slice(FRAME.length) : pathname;
}

/**
 * What a websocket offers, as its only way to say who it is.
 * @param {Frame} frame
 */
export function protocolsOf(frame) {
  return ["vramscope", `vramscope.token.${frame.token}`];
}
