// A sentence with code in it: back-ticks and places in a program are set in mono.

import { el } from "../dom.js";
import { piecesOf } from "../findings/card-words.js";

/**
 * @param {string} text
 * @returns {Node[]}
 */
export function richText(text) {
  return piecesOf(text).map((piece) => (piece.isCode ? el("code", {}, piece.text) : document.createTextNode(piece.text)));
}
