import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const css = readFileSync(new URL("../../vramscope_frontend/css/tokens.css", import.meta.url), "utf8");
const themes = { dark: css.slice(css.indexOf(":root {"), css.indexOf(":root[data-theme")), light: css.slice(css.indexOf(":root[data-theme"), css.indexOf("@media")) };
/** Machado 2009, severity 1: as people with each kind of colour blindness see it. */
const SIGHTS = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
/** Neighbours in the stack that no hatch tells apart. */
const NEIGHBOURS = [["parameters", "gradients"], ["gradients", "optimizer"], ["optimizer", "buffers"], ["optimizer", "activations"], ["buffers", "activations"], ["activations", "unsplit"], ["activations", "cached"], ["unsplit", "cached"], ["cached", "context"], ["held", "within"]];
const LEAST = { dark: 14.3, light: 12.6 };

const times = (/** @type {number[][]} */ matrix, /** @type {number[]} */ vector) => matrix.map((row) => row.reduce((sum, value, i) => sum + value * vector[i], 0));
const linear = (/** @type {string} */ hex) => [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
const TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
const lab = (/** @type {string} */ hex, /** @type {number[][]} */ sight) => {
  const seen = times(sight, linear(hex)).map((c) => Math.min(1, Math.max(0, c)));
  const [x, y, z] = times(TO_XYZ, seen).map((value, i) => value / [0.95047, 1, 1.08883][i]).map((v) => (v > 0.008856 ? Math.cbrt(v) : 7.787 * v + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
};
const distance = (/** @type {string} */ a, /** @type {string} */ b, /** @type {number[][]} */ sight) => Math.hypot(...lab(a, sight).map((value, i) => value - lab(b, sight)[i]));

for (const [theme, text] of Object.entries(themes)) {
  const colour = (/** @type {string} */ name) => new RegExp(`--cat-${name}: (#[0-9a-f]{6})`).exec(text)?.[1] ?? "";
  test(`neighbours in the stack are told apart by everyone (${theme})`, () => {
    for (const [one, other] of NEIGHBOURS) {
      for (const [name, sight] of Object.entries(SIGHTS)) {
        const found = distance(colour(one), colour(other), sight);
        assert.ok(found >= LEAST[/** @type {"dark" | "light"} */ (theme)], `${one} and ${other} are ${found.toFixed(1)} apart with ${name} sight`);
      }
    }
  });
}
