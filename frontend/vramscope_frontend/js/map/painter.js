// Draws rows of segments on a canvas: only what is in view, and where several blocks share a
// pixel, the paint with the most bytes.

import { lastAtOrBefore } from "./packing.js";

/** @typedef {import("./packing.js").Packing} Packing */
/** @typedef {import("./packing.js").Placed} Placed */
/** @typedef {import("./paints.js").Palette} Palette */
/** @typedef {import("./paints.js").Runs} Runs */
/** @typedef {import("./map-facts.js").Place} Place */
/** @typedef {import("../charts/theme.js").Tokens} Tokens */
/** @typedef {{top: number, width: number, height: number, pitch: number, bar: number, scale: number}} Frame  px; top is the part scrolled away; scale is px per byte */
/** @typedef {{selected: Place | null, largestFree: Place | null, label: string, lit: Set<number> | null, mainStream: number}} Marks  lit: addresses of blocks that stand out */

/** So narrow a line between blocks would be all that is seen. */
const SEPARATE_FROM = 3;
const LABEL_FROM = 150;

/**
 * A paint's colour or pattern.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./paints.js").Paint} paint
 * @param {Tokens} tokens
 * @param {number} dpr
 * @returns {string | CanvasPattern}
 */
export function fillOf(context, paint, tokens, dpr) {
  const colour = colourOf(paint, tokens);
  if (!paint.hatch) return colour;
  const side = 8;
  const tile = document.createElement("canvas");
  tile.width = tile.height = side * dpr;
  const draw = tile.getContext("2d");
  if (!draw) return colour;
  draw.scale(dpr, dpr);
  draw.fillStyle = tokens.panel;
  draw.fillRect(0, 0, side, side);
  draw.strokeStyle = draw.fillStyle = colour;
  if (paint.hatch === "pending") {
    for (const [x, y] of [[2, 2], [6, 6]]) {
      draw.beginPath();
      draw.arc(x, y, 1.4, 0, 2 * Math.PI);
      draw.fill();
    }
  } else {
    const slope = paint.hatch === "stranded" ? 1 : -1;
    draw.lineWidth = 2;
    draw.beginPath();
    for (const shift of [-side, 0, side]) {
      draw.moveTo(shift - 1, slope > 0 ? side + 1 : -1);
      draw.lineTo(shift + side + 1, slope > 0 ? -1 : side + 1);
    }
    draw.stroke();
  }
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(1 / dpr));
  return pattern ?? colour;
}

/**
 * @param {import("./paints.js").Paint} paint
 * @param {Tokens} tokens
 */
export function colourOf(paint, tokens) {
  const scale = /^scale-(\d+)$/.exec(paint.colour);
  if (scale) return tokens.scale[{ 5: 2, 10: 3, 16: 4, 20: 5 }[scale[1]] ?? 2];
  return tokens.category[/** @type {keyof Tokens["category"]} */ (paint.colour)];
}

export class Painter {
  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Tokens} tokens
   * @param {Palette} palette
   * @param {number} dpr
   */
  constructor(context, tokens, palette, dpr) {
    this.context = context;
    this.tokens = tokens;
    this.palette = palette;
    this.dpr = dpr;
    this.fills = palette.paints.map((paint) => fillOf(context, paint, tokens, dpr));
    this.weights = new Float64Array(palette.paints.length);
  }

  /**
   * @param {Packing} packing
   * @param {Frame} frame
   * @param {Marks} marks
   */
  draw(packing, frame, marks) {
    const { context, dpr } = this;
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    context.clearRect(0, 0, frame.width, frame.height);
    const first = Math.floor(frame.top / frame.pitch);
    const last = Math.floor((frame.top + frame.height) / frame.pitch);
    for (const placed of packing.placed) {
      this.eachFragment(packing, placed, 0, placed.segment.size, first, last, (row, from, to) => this.drawFragment(packing, frame, marks, placed, row, from, to));
    }
    if (marks.largestFree) this.outline(packing, frame, marks.largestFree, this.tokens.accent, first, last, marks.label);
    if (marks.selected) this.outline(packing, frame, marks.selected, this.tokens.ink, first, last, "");
  }

  /**
   * The stretches of a segment that lie in the rows in view, by offset in the segment.
   * @param {Packing} packing
   * @param {Placed} placed
   * @param {number} begin
   * @param {number} end
   * @param {number} first
   * @param {number} last
   * @param {(row: number, from: number, to: number) => void} visit
   */
  eachFragment(packing, placed, begin, end, first, last, visit) {
    const width = packing.row_bytes;
    const start = placed.start + begin;
    const stop = placed.start + end;
    for (let row = Math.max(first, Math.floor(start / width)); row <= last && row * width < stop; row++) {
      const from = Math.max(start, row * width) - placed.start;
      const to = Math.min(stop, (row + 1) * width) - placed.start;
      if (to > from) visit(row, from, to);
    }
  }

  /**
   * @param {Packing} packing
   * @param {Frame} frame
   * @param {Marks} marks
   * @param {Placed} placed
   * @param {number} row
   * @param {number} from
   * @param {number} to
   */
  drawFragment(packing, frame, marks, placed, row, from, to) {
    const { context } = this;
    const y = row * frame.pitch - frame.top;
    const left = (placed.start + from - row * packing.row_bytes) * frame.scale;
    const runs = this.palette.runs(placed.segment);
    this.drawRuns(runs, from, to, left, y, frame, marks, placed.segment);
    this.drawEdge(placed.segment, left, y, Math.max(1, (to - from) * frame.scale), frame.bar, marks.mainStream);
    context.globalAlpha = 1;
  }

  /**
   * @param {Runs} runs
   * @param {number} from
   * @param {number} to
   * @param {number} left
   * @param {number} y
   * @param {Frame} frame
   * @param {Marks} marks
   * @param {import("./map-state.js").Segment} segment
   */
  drawRuns(runs, from, to, left, y, frame, marks, segment) {
    const { context, weights } = this;
    const { scale, bar } = frame;
    let bucket = -1;
    let lit = false;
    const flush = () => {
      if (bucket < 0) return;
      let most = 0;
      for (let paint = 1; paint < weights.length; paint++) if (weights[paint] > weights[most]) most = paint;
      context.globalAlpha = marks.lit && !lit ? 0.3 : 1;
      context.fillStyle = this.fills[most];
      context.fillRect(bucket, y, 1, bar);
      weights.fill(0);
      bucket = -1;
      lit = false;
    };
    const { start, size, paint, block } = runs;
    for (let i = Math.max(0, lastAtOrBefore(start.length, (k) => start[k], from)); i < start.length && start[i] < to; i++) {
      const begin = Math.max(start[i], from);
      const end = Math.min(start[i] + size[i], to);
      const x = left + (begin - from) * scale;
      const width = (end - begin) * scale;
      const isLit = marks.lit?.has(segment.address + segment.offsets[block[i]]) ?? false;
      if (width < 1) {
        const pixel = Math.floor(x);
        if (pixel !== bucket) flush();
        bucket = pixel;
        weights[paint[i]] += end - begin;
        lit ||= isLit;
        continue;
      }
      flush();
      context.globalAlpha = marks.lit && !isLit ? 0.3 : 1;
      context.fillStyle = this.fills[paint[i]];
      context.fillRect(x, y, width, bar);
      if (width >= SEPARATE_FROM && begin > 0 && begin === start[i]) {
        context.globalAlpha = 1;
        context.fillStyle = this.tokens.panel;
        context.fillRect(x, y, 1, bar);
      }
    }
    flush();
    context.globalAlpha = 1;
  }

  /**
   * The outline says what kind of segment it is: double is expandable, dotted a private pool,
   * dashed another stream than most.
   * @param {import("./map-state.js").Segment} segment
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} bar
   * @param {number} mainStream
   */
  drawEdge(segment, x, y, width, bar, mainStream) {
    const { context, tokens } = this;
    context.strokeStyle = tokens.ink3;
    context.lineWidth = 1;
    const isOther = segment.stream !== mainStream;
    if (segment.isPrivate || isOther) {
      context.strokeStyle = tokens.ink;
      context.setLineDash(segment.isPrivate ? [1, 2] : [5, 3]);
    }
    context.strokeRect(x + 0.5, y + 0.5, Math.max(0, width - 1), bar - 1);
    if (segment.isExpandable && width > 8) {
      context.strokeStyle = tokens.panel;
      context.strokeRect(x + 1.5, y + 1.5, width - 3, bar - 3);
      context.strokeStyle = segment.isPrivate || isOther ? tokens.ink : tokens.ink3;
      context.strokeRect(x + 2.5, y + 2.5, width - 5, bar - 5);
    }
    context.setLineDash([]);
  }

  /**
   * @param {Packing} packing
   * @param {Frame} frame
   * @param {Place} place
   * @param {string} colour
   * @param {number} first
   * @param {number} last
   * @param {string} label
   */
  outline(packing, frame, place, colour, first, last, label) {
    const { context, tokens } = this;
    const { segment, index } = place;
    const start = packing.startOf(segment.address);
    if (start === null) return;
    let isLabelled = !label;
    this.eachFragment(packing, { segment, start }, segment.offsets[index], segment.offsets[index] + segment.sizes[index], first, last, (row, from, to) => {
      const y = row * frame.pitch - frame.top;
      const x = (start + from - row * packing.row_bytes) * frame.scale;
      const width = Math.max(2, (to - from) * frame.scale);
      context.strokeStyle = colour;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(0, width - 2), frame.bar - 2);
      if (isLabelled || width < LABEL_FROM || frame.bar < 18) return;
      isLabelled = true;
      context.font = `600 12px ${tokens.font}`;
      const text = context.measureText(label).width;
      context.fillStyle = tokens.panel;
      context.fillRect(x + (width - text) / 2 - 4, y + frame.bar / 2 - 8, text + 8, 16);
      context.fillStyle = tokens.ink;
      context.textBaseline = "middle";
      context.fillText(label, x + (width - text) / 2, y + frame.bar / 2 + 0.5);
    });
  }
}
