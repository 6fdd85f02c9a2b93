// Where each call of the tree lies, what its label says, what a search finds. Pure.

import { sizeText } from "../format.js";

/** @typedef {import("../messages.js").CallTree} CallTree */
/** @typedef {{node: number, depth: number, x0: number, x1: number}} Cell shares of the width */

/** Width of one character of the mono font at 12 px. */
export const CHARACTER_PX = 7.25;

/**
 * Children of each node, by size.
 * @param {CallTree} tree
 * @returns {number[][]}
 */
export function childrenOf(tree) {
  /** @type {number[][]} */
  const children = tree.parent.map(() => []);
  tree.parent.forEach((parent, node) => {
    if (parent >= 0) children[parent].push(node);
  });
  return children;
}

/**
 * Cells of a node and all below it, callers first.
 * @param {CallTree} tree
 * @param {number} root
 * @returns {Cell[]}
 */
export function cellsBelow(tree, root) {
  const children = childrenOf(tree);
  /** @type {Cell[]} */
  const cells = [{ node: root, depth: 0, x0: 0, x1: 1 }];
  for (let i = 0; i < cells.length; i++) {
    const cell = cells[i];
    let { x0 } = cell;
    const whole = tree.bytes[cell.node] || 1;
    for (const node of [...children[cell.node]].sort((a, b) => tree.bytes[b] - tree.bytes[a])) {
      const x1 = x0 + ((cell.x1 - cell.x0) * tree.bytes[node]) / whole;
      cells.push({ node, depth: cell.depth + 1, x0, x1 });
      x0 = x1;
    }
  }
  return cells;
}

/**
 * The way from the root to a node.
 * @param {CallTree} tree
 * @param {number} node
 */
export function pathTo(tree, node) {
  const path = [];
  for (let at = node; at >= 0; at = tree.parent[at]) path.unshift(at);
  return path;
}

/**
 * Label of a cell: whole, else name and place, else the name, else cut, else nothing.
 * @param {CallTree} tree
 * @param {number} node
 * @param {number} width_px
 */
export function labelOf(tree, node, width_px) {
  const room = Math.floor((width_px - 8) / CHARACTER_PX);
  const name = tree.name[node];
  const place = tree.place[node];
  const full = [name, place, sizeText(tree.bytes[node])].filter(Boolean).join("  ");
  if (full.length <= room) return full;
  const short = [name, place].filter(Boolean).join("  ");
  for (const text of [short, name]) if (text.length <= room) return text;
  return room >= 4 ? `${name.slice(0, room - 1)}…` : "";
}

/**
 * Nodes whose name, place or file contains a text, and what share of all bytes lies below them.
 * @param {CallTree} tree
 * @param {string} text
 * @returns {{found: Set<number>, share: number} | null} null without a text
 */
export function searchTree(tree, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  /** @type {Set<number>} */
  const found = new Set();
  let bytes = 0;
  tree.parent.forEach((_, node) => {
    if (![tree.name[node], tree.place[node], tree.file[node]].some((one) => one.toLowerCase().includes(wanted))) return;
    found.add(node);
    // What lies below a match is counted with it.
    if (!pathTo(tree, node).slice(0, -1).some((caller) => found.has(caller))) bytes += tree.bytes[node];
  });
  return { found, share: tree.bytes[0] ? bytes / tree.bytes[0] : 0 };
}
