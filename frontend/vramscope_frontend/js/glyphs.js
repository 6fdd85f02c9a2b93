// Severity has a shape before it has a colour.

import { svg } from "./dom.js";

/** @typedef {"ok" | "info" | "warn" | "crit" | "quiet"} Severity */

/**
 * @param {Severity} severity
 * @param {number} [size]
 */
export function severityGlyph(severity, size = 26) {
  const root = svg("svg", { viewBox: "0 0 26 26", width: size, height: size, "aria-hidden": "true" });
  const line = { fill: "none", stroke: "currentColor", "stroke-width": 2, "stroke-linecap": "round" };
  switch (severity) {
    case "ok":
      root.append(
        svg("circle", { cx: 13, cy: 13, r: 11.5, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }),
        svg("path", { d: "M8 13.5l3.4 3.4L18 10", ...line, stroke: "var(--ink)", "stroke-width": 2.2 }),
      );
      break;
    case "warn":
      root.append(
        svg("path", { d: "M13 2.5L25 23.5H1z", fill: "currentColor" }),
        svg("path", { d: "M13 10v6M13 19.6v.6", ...line, stroke: "var(--panel)", "stroke-width": 2.4 }),
      );
      break;
    case "crit":
      root.append(
        svg("path", { d: "M8 1h10l7 7v10l-7 7H8l-7-7V8z", fill: "currentColor" }),
        svg("path", { d: "M13 7v7M13 18.4v.6", ...line, stroke: "var(--panel)", "stroke-width": 2.6 }),
      );
      break;
    case "quiet":
      root.append(
        svg("circle", { cx: 13, cy: 13, r: 11.5, fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-dasharray": "3.2 2.8" }),
      );
      break;
    default:
      root.append(
        svg("circle", { cx: 13, cy: 13, r: 11.5, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }),
        svg("path", { d: "M13 12v6.5M13 7.6v.4", ...line, stroke: "var(--ink)" }),
      );
  }
  return root;
}

/** The mark of the product, as in the icon of the tab. */
export function logo() {
  return svg(
    "svg",
    { viewBox: "0 0 20 20", "aria-hidden": "true" },
    svg("rect", { x: 0.7, y: 0.7, width: 18.6, height: 18.6, rx: 3, fill: "none", stroke: "var(--ink3)", "stroke-width": 1.2 }),
    svg("path", { d: "M4 15.5V9.5h3v-3h3.2v4h2.6v-6H16v11", fill: "none", stroke: "var(--accent)", "stroke-width": 1.6 }),
  );
}
