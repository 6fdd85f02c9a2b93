// The memory map of one rank as the frames tell it: a whole one, then what changes. Pure.

/** @typedef {import("../messages.js").MapFrame} MapFrame */
/** @typedef {Omit<MapFrame, "segments" | "blocks" | "gone" | "texts" | "first_text">} MapHead */

export const FREE = 0;
export const ALLOCATED = 1;
export const PENDING = 2;

const LARGE = 1;
const EXPANDABLE = 2;
const PRIVATE = 4;
const SUMMARISED = 8;

/** A segment with its blocks as columns. Never changed: the next frame brings another one. */
export class Segment {
  /**
   * @param {MapFrame["segments"]} segments
   * @param {number} i
   * @param {MapFrame["blocks"]} blocks
   * @param {number} first
   */
  constructor(segments, i, blocks, first) {
    const end = first + segments.blocks[i];
    const flags = segments.flags[i];
    this.address = segments.address[i];
    this.size = segments.size[i];
    this.stream = segments.stream[i];
    this.pool = `${segments.pool_owner[i]}.${segments.pool_number[i]}`;
    this.page_bytes = segments.page_bytes[i];
    this.isLarge = (flags & LARGE) !== 0;
    this.isExpandable = (flags & EXPANDABLE) !== 0;
    this.isPrivate = (flags & PRIVATE) !== 0;
    this.isSummarised = (flags & SUMMARISED) !== 0;
    this.sizes = Float64Array.from(blocks.size.slice(first, end));
    this.requested = blocks.requested.slice(first, end);
    this.states = Uint8Array.from(blocks.state.slice(first, end));
    this.categories = Uint8Array.from(blocks.category.slice(first, end));
    this.owners = blocks.owner.slice(first, end);
    this.stacks = blocks.stack.slice(first, end);
    this.firstSteps = blocks.first_step.slice(first, end);
    this.first_ms = blocks.first_ms.slice(first, end);
    this.counts = blocks.count.slice(first, end);
    this.offsets = new Float64Array(this.sizes.length);
    for (let b = 1; b < this.sizes.length; b++) this.offsets[b] = this.offsets[b - 1] + this.sizes[b - 1];
  }

  get isLive() {
    return this.states.includes(ALLOCATED);
  }
}

export class MapState {
  constructor() {
    /** @type {MapHead | null} */
    this.head = null;
    /** @type {Map<number, Segment>} */
    this.segments = new Map();
    /** @type {string[]} */
    this.texts = [];
  }

  /**
   * @param {MapFrame} frame
   * @returns {boolean} false when the frame changes one that never came: the whole is needed
   */
  take(frame) {
    if (frame.base === 0) {
      this.segments = new Map();
      this.texts = [];
    } else if (frame.base !== this.head?.number || frame.first_text !== this.texts.length) {
      return false;
    }
    const { segments, blocks, gone, texts, first_text: _, ...head } = frame;
    for (const address of gone) this.segments.delete(address);
    let first = 0;
    segments.address.forEach((address, i) => {
      this.segments.set(address, new Segment(segments, i, blocks, first));
      first += segments.blocks[i];
    });
    this.texts.push(...texts);
    this.head = head;
    return true;
  }

  /** @param {number} number */
  text(number) {
    return number < 0 ? "" : (this.texts[number] ?? "");
  }
}
