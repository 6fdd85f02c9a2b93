import assert from "node:assert/strict";
import test from "node:test";
import { groupText, layerColours, layerOrder, STRENGTHS } from "../../vramscope_frontend/js/snapshots/layer-colours.js";

/** @type {any} */
const tokens = { category: { parameters: "#8d92f2", gradients: "#6166bd", optimizer: "#3f4382", activations: "#2fa597", buffers: "#a3cdec", cached: "#5f6a79" } };
/** @returns {any} */
const group = (/** @type {string} */ label, /** @type {string | null} */ category) => ({ label, category, file: "" });
const groups = [group("a", "activations"), group("b", "activations"), group("p", "parameters"), group("g", "backward"), group("rest", null)];
const bytes = [[5], [9], [1], [2], [3]];

test("what stays is at the foot, the largest of a category first, what is left on top", () => {
  assert.deepEqual(layerOrder(groups, bytes).map((i) => groups[i].label), ["p", "b", "a", "g", "rest"]);
});

test("further stacks of a category are paler", () => {
  const colours = layerColours(groups, layerOrder(groups, bytes), tokens, "stack");
  assert.equal(colours[1], "rgba(47,165,151,1)");
  assert.equal(colours[0], `rgba(47,165,151,${STRENGTHS[1]})`);
  assert.equal(colours[4], "rgba(95,106,121,1)");
});

test("there are more stacks than shades", () => {
  const many = Array.from({ length: 9 }, (_, i) => group(String(i), "activations"));
  const colours = layerColours(many, many.map((_, i) => i), tokens, "stack");
  assert.equal(colours[8], `rgba(47,165,151,${STRENGTHS.at(-1)})`);
});

test("gradients and the backward pass share a hue", () => {
  const two = [group("g", "gradients"), group("b", "backward")];
  assert.deepEqual(layerColours(two, [0, 1], tokens, "stack"), ["rgba(97,102,189,1)", `rgba(97,102,189,${STRENGTHS[1]})`]);
});

test("categories have words of their own", () => {
  assert.equal(groupText(group("optimizer", "optimizer"), "category"), "Optimizer state");
  assert.equal(groupText(group("train.py:3 f", "other"), "stack"), "train.py:3 f");
});
