// The table beside the chart: the legend of the stack and its numbers, in the same order from top
// to bottom. It follows the cursor ten times a second by plain text, without any redraw.

import { CROSSED, hatchColour, readTokens } from "../charts/theme.js";
import { LAYERS } from "../composition.js";
import { el, setAttribute, setText, svg } from "../dom.js";
import { exactBytes, inUnit, known, sizeText } from "../format.js";

/** @typedef {import("../memory-model.js").Reading} Reading */
/** @typedef {import("../composition.js").LayerId} LayerId */
/** @typedef {import("../charts/timeline.js").Line} Line */
/** @typedef {{row: HTMLTableRowElement, end: HTMLTableCellElement, peak: HTMLTableCellElement}} Cells */

/**
 * Top to bottom. "inside" has no row of its own: it is the two rows beside its cell together; nor has
 * "tensors": it is the first sum, which is drawn undivided before the first step.
 */
const ORDER = [...LAYERS].reverse().filter((layer) => layer.id !== "inside" && layer.id !== "tensors");

/**
 * A swatch with the fill of its category, hatch included.
 * @param {LayerId | "free"} id
 * @param {import("../charts/theme.js").Tokens} tokens
 */
export function swatch(id, tokens) {
  const mark = el("span", { class: "swatch" });
  if (id === "free") {
    mark.style.boxShadow = `inset 0 0 0 1px ${tokens.line2}`;
    return mark;
  }
  const layer = LAYERS.find((one) => one.id === id);
  const colour = tokens.category[id];
  if (!layer?.pattern) {
    mark.style.background = colour;
    return mark;
  }
  const stroke = { stroke: hatchColour(tokens, id), "stroke-width": 1.6 };
  const ground = CROSSED.has(id) ? colour : tokens.panel;
  const shapes = {
    "/": [svg("path", { d: "M-1 5L5 -1M-1 11L11 -1M5 11L11 5", ...stroke })],
    "\\": [svg("path", { d: "M-1 5L5 11M-1 -1L11 11M5 -1L11 5", ...stroke })],
    "-": [svg("path", { d: "M0 2.5H10M0 7.5H10", ...stroke })],
    x: [svg("path", { d: "M0 0L10 10M10 0L0 10", ...stroke, "stroke-width": 1 })],
    ".": [2.5, 7.5].flatMap((x) => [2.5, 7.5].map((y) => svg("circle", { cx: x, cy: y, r: 1.5, fill: colour }))),
  };
  mark.append(svg("svg", { viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, fill: ground }), ...shapes[layer.pattern]));
  return mark;
}

export class Breakdown {
  constructor() {
    this.unitHead = el("th", { scope: "col" }, "GiB");
    this.endHead = el("th", { scope: "col" }, "Step end");
    this.peakHead = el("th", { scope: "col" }, "At peak");
    /** @type {Map<string, Cells>} */
    this.cells = new Map();
    /** Swatch of what is allocated where no step end divides it. */
    this.undivided = el("span", {});
    this.body = el("tbody", {});
    this.sums = el("tbody", {});
    this.phase = el("td", { colspan: 2 });
    this.phaseRow = el("tbody", { hidden: true }, el("tr", {}, el("td", { title: "What the rank was doing: training, or what interrupted it." }, "Phase"), this.phase));
    this.note = el("p", { class: "breakdown-note" });
    this.element = el("div", { class: "breakdown-wrap" }, el("table", { class: "breakdown" }, el("thead", {}, el("tr", {}, this.unitHead, this.endHead, this.peakHead)), this.body, this.sums, this.phaseRow), this.note);
    this.build();
  }

  build() {
    const tokens = readTokens();
    this.cells.clear();
    this.undivided = swatch("tensors", tokens);
    this.undivided.hidden = true;
    this.body.replaceChildren(
      this.rowOf("free", "Free on the device", "Memory of the device that no process uses.", swatch("free", tokens)),
      ...ORDER.map((layer) => this.rowOf(layer.id, layer.name, layer.definition, swatch(layer.id, tokens))),
    );
    this.sums.replaceChildren(
      this.rowOf("allocated", "Allocated by tensors", LAYERS[0].definition, this.undivided, "sum"),
      this.rowOf("reserved", "Reserved by PyTorch", "Bytes that PyTorch holds from the device: segments, used or cached.", null),
      this.rowOf("used", "Used on the device", "Memory in use on the device, by every process.", null),
    );
  }

  themeChanged() {
    this.build();
  }

  /**
   * @param {string} id
   * @param {string} name
   * @param {string} definition
   * @param {HTMLElement | null} mark
   * @param {string} [className]
   */
  rowOf(id, name, definition, mark, className = "") {
    const end = el("td", {});
    const peak = el("td", {});
    const row = el("tr", { class: className }, el("td", { title: definition }, mark, name), end, peak);
    this.cells.set(id, { row, end, peak });
    return row;
  }

  /**
   * @param {Reading | null} reading
   * @param {{name: string, bytes: number}} unit
   * @param {boolean} byStep
   * @param {string | null} [phase] what the rank was doing at the cursor
   */
  show(reading, unit, byStep, phase = null) {
    this.phaseRow.hidden = phase === null;
    setText(this.phase, phase ?? "");
    setAttribute(this.phase, "title", phase);
    setText(this.unitHead, unit.name);
    setText(this.endHead, reading?.endLabel ?? (byStep ? "Step end" : "Latest"));
    this.endHead.classList.toggle("at", reading?.atCursor ?? false);
    setText(this.peakHead, byStep ? "At peak" : "Highest");
    setAttribute(this.peakHead, "title", reading?.peakTitle ?? null);
    for (const side of /** @type {const} */ (["end", "peak"])) {
      const state = reading?.[side];
      for (const layer of ORDER) this.write(layer.id, side, state?.layers[layer.id], unit);
      this.write("free", side, state?.free, unit);
      this.write("allocated", side, state?.allocated, unit);
      this.write("reserved", side, state?.reserved, unit);
      this.write("used", side, state?.usedKnown ? state.used : null, unit);
      this.joinInside(side, state?.layers.inside ?? null, unit);
    }
    this.showDivision([reading?.end, reading?.peak]);
    for (const [id, { row, end, peak }] of this.cells) {
      const zero = [end, peak].every((cell) => cell.hidden || /^(0\.0|–)$/.test(cell.textContent ?? ""));
      row.classList.toggle("zero", zero && !["reserved", "used", "allocated", "free"].includes(id));
    }
    this.writeNote(reading, byStep);
  }

  /** @param {(import("../composition.js").Composition | undefined)[]} states */
  showDivision(states) {
    const drawn = (/** @type {LayerId} */ id) => states.some((state) => known(state?.layers[id]));
    const undivided = drawn("tensors") && !drawn("held");
    this.undivided.hidden = !undivided;
    for (const id of ["held", "within"]) {
      const cells = this.cells.get(id);
      if (cells) cells.row.hidden = undivided;
    }
  }

  /**
   * @param {string} id
   * @param {"end" | "peak"} side
   * @param {number | null | undefined} bytes
   * @param {{bytes: number}} unit
   */
  write(id, side, bytes, unit) {
    const cell = this.cells.get(id)?.[side];
    if (!cell) return;
    setText(cell, inUnit(bytes, unit));
    setAttribute(cell, "title", exactBytes(bytes));
  }

  /**
   * Where the counters do not tell cached from stranded, one cell spans both rows.
   * @param {"end" | "peak"} side
   * @param {number | null} inside
   * @param {{bytes: number}} unit
   */
  joinInside(side, inside, unit) {
    const cached = this.cells.get("cached")?.[side];
    const stranded = this.cells.get("stranded")?.[side];
    if (!cached || !stranded) return;
    const joint = known(inside) && inside > 0;
    cached.rowSpan = joint ? 2 : 1;
    cached.classList.toggle("joint", joint);
    stranded.hidden = joint;
    if (!joint) return;
    setText(cached, inUnit(inside, unit));
    setAttribute(cached, "title", `${exactBytes(inside)}, cached and stranded together: the counters do not split them for that moment`);
  }

  /**
   * Exact bytes at the cursor; without one, how to read the table.
   * @param {Reading | null} reading
   * @param {boolean} byStep
   */
  writeNote(reading, byStep) {
    if (!reading?.atCursor) {
      setText(this.note, `Same scale and order as the two columns. Point at the chart to read any ${byStep ? "step" : "moment"} here.`);
      return;
    }
    const { end } = reading;
    const line = (/** @type {string} */ name, /** @type {number | null} */ bytes) => `${name} ${sizeText(bytes, 2)}, ${exactBytes(bytes)}`;
    setText(this.note, [`${byStep ? "Highest moment of the step. " : ""}${line("Allocated", end.allocated)}`, line("reserved", end.reserved), end.usedKnown ? line("device", end.used) : "device not known"].join("; "));
  }
}

/**
 * The stroke of a line, as in the chart.
 * @param {Pick<Line, "ink" | "dash">} line
 * @param {import("../charts/theme.js").Tokens} tokens
 */
export function lineSwatch(line, tokens) {
  const dash = { solid: "", dot: "1.5 2", dash: "4 2" }[line.dash];
  return el("span", { class: "swatch" }, svg("svg", { viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" }, svg("path", { d: "M0 5H10", stroke: tokens[line.ink], "stroke-width": 2, "stroke-dasharray": dash || null })));
}
