// Controls in the header of the map: rank, size of the request, colours, order.

import { el, setAttribute } from "../dom.js";
import { Segmented } from "../views/parts.js";
import { parseSize } from "./fits.js";

/** @typedef {import("./paints.js").ColourBy} ColourBy */
/** @typedef {import("./packing.js").Order} Order */

const COLOURS = /** @type {{value: ColourBy, text: string}[]} */ ([{ value: "category", text: "Category" }, { value: "stack", text: "Stack" }, { value: "age", text: "Age" }, { value: "stream", text: "Stream" }, { value: "pool", text: "Pool" }]);
const ORDERS = /** @type {{value: Order, text: string}[]} */ ([{ value: "size", text: "By size" }, { value: "address", text: "By address" }]);
const NO_STACKS = "No stacks: memory history was not being recorded when these blocks were allocated.";

export class MapControls {
  /**
   * @param {number[]} ranks
   * @param {number} rank
   * @param {{onRank: (rank: number) => void, onRequest: () => void, onColour: () => void, onOrder: (order: Order) => void}} handlers
   */
  constructor(ranks, rank, handlers) {
    /** @type {ColourBy} */
    this.colourBy = "category";
    /** @type {number | null} as typed; null follows the largest block */
    this.request_bytes = null;
    this.colours = new Segmented("Colour by", COLOURS, (by) => {
      this.colourBy = by;
      this.colours.choose(by);
      handlers.onColour();
    });
    this.colours.choose(this.colourBy);
    this.orders = new Segmented("Order of the segments", ORDERS, (order) => {
      this.orders.choose(order);
      handlers.onOrder(order);
    });
    this.orders.choose("size");
    this.input = el("input", { class: "map-input", type: "text", "aria-label": "Size of the next request", placeholder: "largest block", spellcheck: "false", input: () => this.read(handlers.onRequest) });
    this.select = el("select", { class: "select", "aria-label": "Rank", hidden: ranks.length < 2, change: () => handlers.onRank(Number(this.select.value)) }, ...ranks.map((one) => el("option", { value: one, selected: one === rank }, `Rank ${one}`)));
    this.element = el("div", { class: "controls" }, this.select, el("label", { class: "ink2 map-ask" }, "Request ", this.input), el("span", { class: "ink2" }, "Colour"), this.colours.element, this.orders.element);
  }

  /** @param {() => void} onRequest */
  read(onRequest) {
    this.request_bytes = parseSize(this.input.value);
    setAttribute(this.input, "aria-invalid", this.input.value.trim() !== "" && this.request_bytes === null ? "true" : null);
    onRequest();
  }

  /** @param {boolean} hasStacks */
  offerStacks(hasStacks) {
    this.colours.disable("stack", hasStacks ? null : NO_STACKS);
  }
}
