// The canvas of the map: scrolls by rows, zooms by the width of a row, and says which block is meant.

import { readTokens } from "../charts/theme.js";
import { el } from "../dom.js";
import { Packing, rowBytesFor } from "./packing.js";
import { Painter } from "./painter.js";
import { blockBeside, rowNeighbour } from "./walk.js";

/** @typedef {import("./map-facts.js").Place} Place */
/** @typedef {import("./map-state.js").MapState} MapState */
/** @typedef {import("./paints.js").Palette} Palette */
/** @typedef {import("./painter.js").Marks} Marks */

const GAP = 5;
const ROOM = 560;
const PITCH = { least: 10, most: 34 };
const MAX_ZOOM = 10;
const MAX_DPR = 2;

export class MapCanvas {
  /**
   * @param {{onPick: (place: Place | null) => void, onHover: (place: Place | null, event: PointerEvent | null) => void, onMoved: () => void, onResized: () => void}} handlers
   */
  constructor(handlers) {
    this.handlers = handlers;
    this.packing = new Packing();
    this.zoom = 0;
    /** @type {import("./packing.js").Order} */
    this.order = "size";
    /** @type {MapState | null} */
    this.map = null;
    /** @type {Palette | null} */
    this.palette = null;
    /** @type {Marks} */
    this.marks = { selected: null, largestFree: null, label: "", lit: null, mainStream: 0 };
    this.frame = { top: 0, width: 0, height: 0, pitch: PITCH.most, bar: PITCH.most - 4, scale: 0 };
    this.pending = 0;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.spacer = el("div", { class: "spacer" }, this.canvas);
    this.element = el("div", { class: "map-scroll", tabindex: 0, role: "application", "aria-label": "Blocks of the memory map", "aria-describedby": "map-keys" }, this.spacer);
    this.element.addEventListener("scroll", () => {
      this.paint();
      handlers.onMoved();
    });
    this.element.addEventListener("keydown", (event) => {
      if (!event.altKey && !event.ctrlKey && !event.metaKey && this.key(event.key)) event.preventDefault();
    });
    this.canvas.addEventListener("click", (event) => handlers.onPick(this.at(event)));
    this.canvas.addEventListener("pointermove", (event) => handlers.onHover(this.at(event), event));
    this.canvas.addEventListener("pointerleave", () => handlers.onHover(null, null));
    this.observer = new ResizeObserver(() => {
      const { width } = this.frame;
      this.update();
      if (width > 0 && width !== this.frame.width) handlers.onResized();
    });
    this.observer.observe(this.element);
    /** @type {Painter | null} */
    this.painter = null;
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.pending);
  }

  themeChanged() {
    this.painter = null;
    this.paint();
  }

  /**
   * @param {MapState} map
   * @param {Palette} palette
   * @param {Marks} marks
   */
  show(map, palette, marks) {
    if (palette !== this.palette) this.painter = null;
    Object.assign(this, { map, palette, marks });
    this.update();
  }

  /** @param {import("./packing.js").Order} order */
  sort(order) {
    this.order = order;
    this.packing.sort();
    this.update();
  }

  /** @param {number} steps each halves the width of a row in bytes */
  zoomBy(steps) {
    const zoom = Math.max(0, Math.min(MAX_ZOOM, this.zoom + steps));
    if (zoom === this.zoom) return false;
    this.zoom = zoom;
    this.update();
    const { selected } = this.marks;
    if (selected) this.reveal(selected);
    this.handlers.onMoved();
    return true;
  }

  update() {
    const { map } = this;
    const width = this.element.clientWidth;
    if (!map || width <= 0) return;
    const row_bytes = rowBytesFor(map.segments.values()) / 2 ** this.zoom;
    const scale = width / row_bytes;
    this.packing.update(map.segments, row_bytes, GAP / scale, this.order);
    const pitch = Math.max(PITCH.least, Math.min(PITCH.most, Math.floor(ROOM / Math.max(1, this.packing.rows))));
    const whole = this.packing.rows * pitch;
    const height = Math.max(pitch, Math.min(ROOM, whole));
    this.spacer.style.height = `${whole}px`;
    this.element.style.height = `${height}px`;
    this.frame = { top: 0, width, height, pitch, bar: pitch - Math.max(1, Math.min(4, pitch >> 2)), scale };
    this.paint();
  }

  paint() {
    cancelAnimationFrame(this.pending);
    this.pending = requestAnimationFrame(() => this.paintNow());
  }

  paintNow() {
    const { canvas, palette, frame } = this;
    const context = canvas.getContext("2d");
    if (!context || !palette || frame.width <= 0) return;
    const dpr = Math.min(MAX_DPR, window.devicePixelRatio || 1);
    const [width, height] = [Math.round(frame.width * dpr), Math.round(frame.height * dpr)];
    if (canvas.width !== width || canvas.height !== height) {
      Object.assign(canvas, { width, height });
      canvas.style.width = `${frame.width}px`;
      canvas.style.height = `${frame.height}px`;
      this.painter = null;
    }
    this.painter ??= new Painter(context, readTokens(), palette, dpr);
    frame.top = this.element.scrollTop;
    const started_ms = performance.now();
    this.painter.draw(this.packing, frame, this.marks);
    // For whoever measures: what the last painting took.
    this.element.dataset.paintedMs = (performance.now() - started_ms).toFixed(1);
  }

  /**
   * @param {MouseEvent} event
   * @returns {Place | null}
   */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top + this.element.scrollTop;
    const { pitch, scale } = this.frame;
    return this.packing.blockAt(Math.floor(y / pitch) * this.packing.row_bytes + x / scale);
  }

  /** @param {string} key */
  key(key) {
    const { selected } = this.marks;
    if (key === "+" || key === "=") return this.zoomBy(1);
    if (key === "-") return this.zoomBy(-1);
    if (key === "0") return this.zoomBy(-MAX_ZOOM);
    if (key === "Escape" && selected) {
      this.handlers.onPick(null);
      return true;
    }
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const rows = { ArrowUp: -1, ArrowDown: 1 }[key];
    const next = step ? blockBeside(this.packing, selected, step) : rows ? rowNeighbour(this.packing, selected, rows) : null;
    if (!next) return false;
    this.handlers.onPick(next);
    this.reveal(next);
    return true;
  }

  /**
   * Scroll so that a block is in view.
   * @param {Place} place
   */
  reveal({ segment, index }) {
    const start = this.packing.startOf(segment.address);
    if (start === null) return;
    const { pitch, height } = this.frame;
    const y = Math.floor((start + segment.offsets[index]) / this.packing.row_bytes) * pitch;
    const { scrollTop } = this.element;
    if (y < scrollTop || y + pitch > scrollTop + height) this.element.scrollTop = Math.max(0, y - height / 2);
  }

  /**
   * Blocks in the rows in view, at most so many.
   * @param {number} most
   * @returns {Place[]}
   */
  inView(most) {
    const { pitch, height } = this.frame;
    const width = this.packing.row_bytes;
    const from = Math.floor(this.element.scrollTop / pitch) * width;
    const to = Math.ceil((this.element.scrollTop + height) / pitch) * width;
    /** @type {Place[]} */
    const places = [];
    for (const { segment, start } of this.packing.placed) {
      if (start >= to || start + segment.size <= from) continue;
      for (let index = 0; index < segment.states.length && places.length < most; index++) {
        const at = start + segment.offsets[index];
        if (at < to && at + segment.sizes[index] > from) places.push({ segment, index });
      }
    }
    return places;
  }
}
