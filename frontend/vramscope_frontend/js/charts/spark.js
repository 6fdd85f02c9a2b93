// A trend in a row of the list: inline SVG, from 0 to the limit, the top hairline is the limit.

import { svg } from "../dom.js";
import { known } from "../format.js";

const WIDTH = 130;
const HEIGHT = 26;

/**
 * @param {(number | null)[]} values
 * @param {number | null} limit
 * @param {string} whose
 */
export function spark(values, limit, whose) {
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": `use of memory of ${whose}` });
  root.append(svg("title", {}, `Use of memory of ${whose}, up to the limit of the device`));
  root.append(svg("path", { class: "spark-limit", d: `M0 .5H${WIDTH}` }));
  const path = sparkPath(values, limit ?? Math.max(0, ...values.filter(known)));
  if (path) {
    root.append(svg("path", { class: "spark-area", d: `${path.line}V${HEIGHT}H${path.start}Z` }));
    root.append(svg("path", { class: "spark-line", d: path.line }));
  }
  return root;
}

/**
 * Steps, not slopes: memory changes at once.
 * @param {(number | null)[]} values
 * @param {number} top
 * @returns {{line: string, start: number} | null}
 */
export function sparkPath(values, top) {
  if (!(top > 0) || !values.some(known)) return null;
  const width = WIDTH / values.length;
  let line = "";
  let start = 0;
  values.forEach((value, i) => {
    if (!known(value)) return;
    const y = (HEIGHT - Math.min(1, value / top) * (HEIGHT - 1)).toFixed(1);
    const x = (i * width).toFixed(1);
    if (!line) start = Number(x);
    line += line ? `V${y}H${((i + 1) * width).toFixed(1)}` : `M${x} ${y}H${((i + 1) * width).toFixed(1)}`;
  });
  return { line, start };
}
