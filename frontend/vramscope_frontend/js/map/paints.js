// What each block is painted with, by what the colours mean at the moment. Pure.

import { eachFree, freeParts } from "./map-facts.js";
import { ALLOCATED, PENDING } from "./map-state.js";
import { stackName } from "./stacks.js";

/** @typedef {import("./map-state.js").MapState} MapState */
/** @typedef {import("./map-state.js").Segment} Segment */
/** @typedef {"category" | "stack" | "age" | "stream" | "pool"} ColourBy */
/** @typedef {{colour: string, hatch?: "stranded" | "private" | "pending", name: string}} Paint  colour is a token's name */
/** @typedef {{start: Float64Array, size: Float64Array, paint: Uint8Array, block: Int32Array}} Runs  what is painted, from left to right */

/** By the codes that travel; what is in none of them is activations and the rest. */
export const CATEGORIES = ["activations", "parameters", "gradients", "optimizer", "buffers"];
const CATEGORY_NAMES = ["Activations and the rest", "Parameters", "Gradients", "Optimizer state", "Buffers"];
const HUES = ["activations", "parameters", "buffers", "gradients", "pending", "other", "optimizer", "unsplit"];
const AGES = ["scale-5", "scale-10", "scale-16", "scale-20"];
const AGE_STEPS = [0, 10, 100, Infinity];
const AGE_NAMES = ["This step", "Up to 10 steps", "Up to 100 steps", "Older"];

const STRANDED = 0;
const CACHED = 1;
const PRIVATE_FREE = 2;
const WAITING = 3;
const REST = 4;
const FIRST = 5;
const FREE_PAINTS = { stranded: STRANDED, cached: CACHED, private: PRIVATE_FREE };

/** Paints of a map in one colouring; the first are those of what is not live. */
export class Palette {
  /**
   * @param {MapState} map
   * @param {ColourBy} by
   */
  constructor(map, by) {
    this.by = by;
    this.step = map.head?.step ?? 0;
    /** @type {Paint[]} */
    this.paints = [
      { colour: "stranded", hatch: "stranded", name: "Free between live blocks" },
      { colour: "cached", name: "Free, could be returned" },
      { colour: "stranded", hatch: "private", name: "Free in a private pool" },
      { colour: "pending", hatch: "pending", name: "Pending free" },
      { colour: "context", name: by === "stack" ? "No stack known" : by === "age" ? "Since before the first look" : "Others" },
    ];
    /** @type {Map<string | number, number>} paint by stack, stream or pool */
    this.keys = new Map();
    if (by === "category") CATEGORIES.forEach((id, i) => this.paints.push({ colour: id, name: CATEGORY_NAMES[i] }));
    else if (by === "age") AGES.forEach((colour, i) => this.paints.push({ colour, name: AGE_NAMES[i] }));
    else this.rank(map);
    /** @type {WeakMap<Segment, Runs>} */
    this.made = new WeakMap();
  }

  /** @param {MapState} map */
  rank(map) {
    /** @type {Map<string | number, number>} */
    const bytes = new Map();
    for (const segment of map.segments.values()) {
      segment.states.forEach((state, i) => {
        const key = this.keyOf(segment, i);
        if (state === ALLOCATED && key !== -1) bytes.set(key, (bytes.get(key) ?? 0) + segment.sizes[i]);
      });
    }
    const ranked = [...bytes].sort((a, b) => b[1] - a[1]).slice(0, HUES.length);
    ranked.forEach(([key], i) => {
      this.keys.set(key, this.paints.length);
      this.paints.push({ colour: HUES[i], name: this.nameOf(map, key) });
    });
  }

  /**
   * @param {Segment} segment
   * @param {number} i
   */
  keyOf(segment, i) {
    if (this.by === "stack") return segment.stacks[i];
    if (this.by === "stream") return segment.stream;
    return segment.isPrivate ? segment.pool : segment.isLarge ? "large" : "small";
  }

  /**
   * @param {MapState} map
   * @param {string | number} key
   */
  nameOf(map, key) {
    if (this.by === "stack") return stackName(map.text(Number(key)));
    if (this.by === "stream") return streamName(Number(key));
    return key === "large" ? "Large pool" : key === "small" ? "Small pool" : `Private pool ${key}`;
  }

  /**
   * @param {Segment} segment
   * @param {number} i
   */
  paintOf(segment, i) {
    if (segment.states[i] === PENDING) return WAITING;
    if (this.by === "category") return FIRST + Math.min(segment.categories[i], CATEGORIES.length - 1);
    if (this.by === "age") {
      if (segment.firstSteps[i] < 0) return REST;
      const steps = this.step - segment.firstSteps[i];
      return FIRST + AGE_STEPS.findIndex((most) => steps <= most);
    }
    return this.keys.get(this.keyOf(segment, i)) ?? REST;
  }

  /**
   * What is painted of a segment; made once.
   * @param {Segment} segment
   * @returns {Runs}
   */
  runs(segment) {
    const known = this.made.get(segment);
    if (known) return known;
    /** @type {{start: number, size: number, paint: number, block: number}[]} */
    const list = [];
    segment.states.forEach((state, i) => {
      if (state === ALLOCATED || state === PENDING) list.push({ start: segment.offsets[i], size: segment.sizes[i], paint: this.paintOf(segment, i), block: i });
    });
    eachFree(segment, (i, from, to) => {
      for (const part of freeParts(segment, i, from, to)) list.push({ start: part.offset, size: part.size, paint: FREE_PAINTS[part.kind], block: i });
    });
    list.sort((a, b) => a.start - b.start);
    const runs = { start: Float64Array.from(list, (run) => run.start), size: Float64Array.from(list, (run) => run.size), paint: Uint8Array.from(list, (run) => run.paint), block: Int32Array.from(list, (run) => run.block) };
    this.made.set(segment, runs);
    return runs;
  }

  /**
   * The paints that this map has, those of live blocks first.
   * @param {Iterable<Segment>} segments
   * @returns {Paint[]}
   */
  legend(segments) {
    /** @type {Set<number>} */
    const used = new Set();
    for (const segment of segments) for (const paint of this.runs(segment).paint) used.add(paint);
    const order = [...this.paints.keys()].sort((a, b) => Number(a < REST) - Number(b < REST) || a - b);
    return order.filter((paint) => used.has(paint) && paint !== REST).concat(used.has(REST) ? [REST] : []).map((paint) => this.paints[paint]);
  }
}

/** @param {number} code */
export function categoryName(code) {
  return CATEGORY_NAMES[code] ?? CATEGORY_NAMES[0];
}

/** @param {number} stream */
export function streamName(stream) {
  return stream === 0 ? "Default stream" : `Stream 0x${stream.toString(16)}`;
}
