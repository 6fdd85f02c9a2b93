// The table beside the chart: the legend of the stack and its numbers, in the same order from top
// to bottom. It follows the cursor ten times a second by plain text, without any redraw.

import { accusing, CROSSED, hatchColour, readTokens } from "../charts/theme.js";
import { CATEGORY_LAYERS, LAYERS, UNDIVIDED_LAYERS } from "../composition.js";
import { el, setAttribute, setText, svg } from "../dom.js";
import { exactBytes, inUnit, known, sizeText } from "../format.js";
import { partsText } from "../step-parts.js";
import { outsideLines, processLines, Unfolding } from "./outside-rows.js";
import { StepPartsTable } from "./step-parts.js";

/** @typedef {import("../memory-model.js").Reading} Reading */
/** @typedef {import("../composition.js").LayerId} LayerId */
/** @typedef {import("../charts/timeline.js").Line} Line */
/** @typedef {{row: HTMLTableRowElement, name: HTMLElement, end: HTMLTableCellElement, peak: HTMLTableCellElement}} Cells */

/**
 * Top to bottom. "inside" has no row of its own: it is the rows beside its cell together; nor has
 * "tensors": it is the first sum, which is drawn undivided before the first step.
 */
const ORDER = [...LAYERS].reverse().filter((layer) => layer.id !== "inside" && layer.id !== "tensors");
const AT_MOST = "; the highest of the step, maybe at another instant of it";
/** Less than this of a unit is shown as 0.0. */
const HALF_SHOWN = 0.05;

/** Rows that say nothing as long as there is none of it. */
const ON_DEMAND = /** @type {ReadonlySet<LayerId>} */ (new Set(/** @type {const} */ (["driver", "private", "pending", "unsplit", "buffers", "grown"])));

/**
 * A swatch with the fill of its category, hatch included.
 * @param {LayerId | "free"} id
 * @param {import("../charts/theme.js").Tokens} tokens
 * @param {boolean} [isAccused] by a finding: hatched, whatever it is
 */
export function swatch(id, tokens, isAccused = false) {
  const mark = el("span", { class: "swatch" });
  if (id === "free") {
    mark.style.boxShadow = `inset 0 0 0 1px ${tokens.line2}`;
    return mark;
  }
  const layer = LAYERS.find((one) => one.id === id);
  const colour = tokens.category[id];
  const pattern = layer?.pattern || (isAccused ? "\\" : "");
  if (!pattern) {
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
  mark.append(svg("svg", { viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, fill: ground }), ...shapes[pattern]));
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
    this.parts = new StepPartsTable();
    /** @type {import("../charts/theme.js").Accused | null} */
    this.accused = null;
    /** Layers of which something was seen. @type {Set<LayerId>} */
    this.seen = new Set();
    /** @type {{context: Unfolding, other: Unfolding} | null} */
    this.unfoldings = null;
    this.element = el("div", { class: "breakdown-wrap" }, el("table", { class: "breakdown" }, el("thead", {}, el("tr", {}, this.unitHead, this.endHead, this.peakHead)), this.body, this.sums, this.phaseRow), this.parts.element, this.note);
    this.build();
  }

  build() {
    const tokens = accusing(readTokens(), this.accused);
    this.cells.clear();
    this.undivided = swatch("tensors", tokens);
    this.undivided.hidden = true;
    this.body.replaceChildren(
      this.rowOf("free", "Free on the device", "Memory of the device that no process uses.", swatch("free", tokens)),
      ...ORDER.map((layer) => this.rowOf(layer.id, layer.name, layer.definition, swatch(layer.id, tokens, layer.id === this.accused?.layer))),
    );
    this.sums.replaceChildren(
      this.rowOf("allocated", "Allocated by tensors", LAYERS[0].definition, this.undivided, "sum"),
      this.rowOf("reserved", "Reserved by PyTorch", "Bytes that PyTorch holds from the device: segments, used or cached.", null),
      this.rowOf("used", "Used on the device", "Memory in use on the device, by every process.", null),
    );
    const unfolding = (/** @type {LayerId} */ id) => {
      const { row, name } = /** @type {Cells} */ (this.cells.get(id));
      return new Unfolding(row, name);
    };
    this.unfoldings = { context: unfolding("context"), other: unfolding("other") };
  }

  themeChanged() {
    this.build();
  }

  /**
   * The row that a finding accuses has the colour of its severity.
   * @param {import("../charts/theme.js").Accused | null} accused
   */
  accuse(accused) {
    if (this.accused?.layer === accused?.layer && this.accused?.severity === accused?.severity) return;
    this.accused = accused;
    if (accused?.layer !== "grown") this.seen.delete("grown");
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
    const label = el("span", {}, name);
    const row = el("tr", { class: className }, el("td", { title: definition }, mark, label), end, peak);
    this.cells.set(id, { row, name: label, end, peak });
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
    this.showRows([reading?.end, reading?.peak], HALF_SHOWN * unit.bytes);
    for (const side of /** @type {const} */ (["end", "peak"])) {
      const state = reading?.[side];
      const most = state?.reservedAtMost ? "≤ " : "";
      for (const layer of ORDER) this.write(layer.id, side, state?.layers[layer.id], unit);
      this.write("free", side, state?.free, unit, state?.reservedAtMost ? "≥ " : "");
      this.write("allocated", side, state?.allocated, unit);
      this.write("reserved", side, state?.reserved, unit, most);
      this.write("used", side, state?.usedKnown ? state.used : null, unit, most);
      this.joinInside(side, state?.layers, unit, most);
    }
    for (const [id, { row, end, peak }] of this.cells) {
      const zero = [end, peak].every((cell) => cell.hidden || /^(0\.0|–)$/.test(cell.textContent ?? ""));
      row.classList.toggle("zero", zero && !["reserved", "used", "allocated", "free"].includes(id));
    }
    this.parts.show(reading?.parts ?? null, unit);
    this.writeNote(reading, byStep);
  }

  /**
   * What the agent says of the memory outside of PyTorch, now.
   * @param {import("../messages.js").AgentStatus | null} status
   * @param {number | null} pid
   * @param {number | null} context_bytes
   * @param {{bytes: number}} unit
   */
  showOutside(status, pid, context_bytes, unit) {
    this.unfoldings?.context.show(outsideLines(status, context_bytes), unit);
    this.unfoldings?.other.show(processLines(status, pid), unit);
  }

  /**
   * Which rows there are: those of the categories, or those that stand for them where they are not known.
   * @param {(import("../composition.js").Composition | undefined)[]} states
   * @param {number} least bytes that show as more than 0.0
   */
  showRows(states, least) {
    const drawn = (/** @type {LayerId} */ id) => states.some((state) => known(state?.layers[id]));
    for (const id of ON_DEMAND) if (states.some((state) => (state?.layers[id] ?? 0) >= least)) this.seen.add(id);
    const isSplit = states.some((state) => state?.isSplit);
    const undivided = drawn("tensors") && !drawn("held") && !isSplit;
    this.undivided.hidden = !undivided;
    for (const { id } of ORDER) {
      const row = this.cells.get(id)?.row;
      if (!row) continue;
      const isCategory = /** @type {readonly LayerId[]} */ (CATEGORY_LAYERS).includes(id);
      const standsIn = /** @type {readonly LayerId[]} */ (UNDIVIDED_LAYERS).includes(id);
      row.hidden = (isCategory && !isSplit) || (standsIn && (undivided || !drawn("held"))) || (ON_DEMAND.has(id) && !this.seen.has(id));
    }
  }

  /**
   * @param {string} id
   * @param {"end" | "peak"} side
   * @param {number | null | undefined} bytes
   * @param {{bytes: number}} unit
   * @param {string} [bound] what the number is a bound of
   */
  write(id, side, bytes, unit, bound = "") {
    const cell = this.cells.get(id)?.[side];
    if (!cell) return;
    setText(cell, known(bytes) ? bound + inUnit(bytes, unit) : inUnit(bytes, unit));
    setAttribute(cell, "title", exactBytes(bytes) + (bound ? AT_MOST : ""));
  }

  /**
   * Where the counters do not tell cached from stranded, one cell spans their rows.
   * @param {"end" | "peak"} side
   * @param {Record<LayerId, number | null> | undefined} layers
   * @param {{bytes: number}} unit
   * @param {string} bound
   */
  joinInside(side, layers, unit, bound) {
    const [first, ...others] = /** @type {const} */ (["cached", "private", "stranded"]).flatMap((id) => this.cells.get(id) ?? []).filter(({ row }) => !row.hidden);
    if (!first) return;
    const inside = layers?.inside;
    const joint = known(inside) && inside >= HALF_SHOWN * unit.bytes;
    first[side].rowSpan = joint ? others.length + 1 : 1;
    first[side].classList.toggle("joint", joint);
    for (const one of others) one[side].hidden = joint;
    if (!joint) return;
    const rest = inside + (layers?.cached ?? 0) + (layers?.private ?? 0) + (layers?.stranded ?? 0);
    setText(first[side], bound + inUnit(rest, unit));
    setAttribute(first[side], "title", `${exactBytes(rest)}, cached and stranded together: nothing splits them for that moment${bound ? AT_MOST : ""}`);
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
    setText(this.note, [`${byStep && !reading.isSample ? `${partsText(reading.parts) || "Highest moment of the step."} ` : ""}${line("Allocated", end.allocated)}`, line("reserved", end.reserved), end.usedKnown ? line("device", end.used) : "device not known"].join("; "));
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
