// Which colour a stack gets: the hue of its category, paler for each further stack of it. Pure.

import { faded } from "../charts/theme.js";

/** @typedef {import("../messages.js").MemoryCategory} MemoryCategory */
/** @typedef {import("../messages.js").MemoryGroup} MemoryGroup */
/** @typedef {import("../charts/theme.js").Tokens} Tokens */

/** Shares of full colour of the first, second, ... stack of one hue. */
export const STRENGTHS = [1, 0.72, 0.5, 0.36, 0.28, 0.22];

/** From the foot of the stack up: what stays over steps first. */
const ORDER = ["unknown", "parameters", "optimizer", "activations", "gradients", "backward", "other"];

/** @type {Record<string, string>} */
export const CATEGORY_WORDS = {
  parameters: "Parameters",
  gradients: "Gradients",
  optimizer: "Optimizer state",
  activations: "Activations",
  backward: "Backward pass, not divided",
  other: "Other live tensors",
  unknown: "Not known",
};

/**
 * @param {MemoryCategory | null} category
 * @param {Tokens} tokens
 */
export function hueOf(category, tokens) {
  switch (category) {
    case "parameters":
    case "gradients":
    case "optimizer":
    case "activations":
      return tokens.category[category];
    case "backward":
      return tokens.category.gradients;
    case "other":
      return tokens.category.buffers;
    default:
      return tokens.category.cached;
  }
}

/**
 * Words of a group: categories have their own.
 * @param {MemoryGroup} group
 * @param {string} by
 */
export function groupText(group, by) {
  return by === "category" ? (CATEGORY_WORDS[group.label] ?? group.label) : group.label;
}

/**
 * Order of the layers from the foot up: by category, the largest of each first, what is left last.
 * @param {MemoryGroup[]} groups
 * @param {number[][]} bytes
 * @returns {number[]} indices
 */
export function layerOrder(groups, bytes) {
  const place = (/** @type {MemoryGroup} */ group) => (group.category === null ? ORDER.length : ORDER.indexOf(group.category));
  const top = bytes.map((row) => row.reduce((most, value) => Math.max(most, value), 0));
  return groups.map((_, i) => i).sort((a, b) => place(groups[a]) - place(groups[b]) || top[b] - top[a] || a - b);
}

/**
 * A colour for each group, in the order of the groups.
 * @param {MemoryGroup[]} groups
 * @param {number[]} order from the foot up
 * @param {Tokens} tokens
 * @param {string} by
 */
export function layerColours(groups, order, tokens, by) {
  /** @type {Map<string, number>} */
  const used = new Map();
  /** @type {string[]} */
  const colours = new Array(groups.length);
  for (const index of order) {
    // Sizes have no category: shades of one hue, the largest strongest.
    const hue = by === "size" ? tokens.category.activations : hueOf(groups[index].category, tokens);
    const nth = used.get(hue) ?? 0;
    used.set(hue, nth + 1);
    colours[index] = faded(hue, STRENGTHS[Math.min(nth, STRENGTHS.length - 1)]);
  }
  return colours;
}
