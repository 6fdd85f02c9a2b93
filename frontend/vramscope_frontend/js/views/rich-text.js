// A sentence with code in it: back-ticks and places in a program are set in mono. Names with a hyphen
// stay in one line.

import { el } from "../dom.js";
import { piecesOf } from "../findings/card-words.js";

/** "llama-8b-sft", "head-room"; what is longer may need the break. */
const HYPHENED = /((?<!\S)[\w-]{0,13}\w-\w[\w-]{0,13})/;

/**
 * @param {string} text
 * @returns {Node[]}
 */
export function richText(text) {
  return piecesOf(text).flatMap((piece) => (piece.isCode ? [el("code", {}, piece.text)] : piece.text.split(HYPHENED).map((part, i) => (i % 2 ? el("span", { class: "unbroken" }, part) : document.createTextNode(part)))));
}
