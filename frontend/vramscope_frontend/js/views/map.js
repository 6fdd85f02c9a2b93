// Map: will the next request fit, and what is in the way?

import { el, fill, fillWhenChanged, refill, setAttribute, setText } from "../dom.js";
import { count, plural, sizeText } from "../format.js";
import { blockCard, blockLine, fitsCard } from "../map/cards.js";
import { fitOf, roomOf } from "../map/fits.js";
import { legendOf } from "../map/legend.js";
import { MapCanvas } from "../map/map-canvas.js";
import { MapControls } from "../map/map-controls.js";
import { mapFacts } from "../map/map-facts.js";
import { MapFeed } from "../map/map-feed.js";
import { mapVerdict } from "../map/map-verdict.js";
import { Palette } from "../map/paints.js";
import { RequestBox } from "../map/request-box.js";
import { SnapshotLine } from "../map/snapshot-line.js";
import { mapStand } from "../map/stand.js";
import { blockBeside } from "../map/walk.js";
import { panel } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../map/map-facts.js").Place} Place */
/** @typedef {import("../map/map-facts.js").MapFacts} MapFacts */
/** @typedef {import("../map/map-state.js").Segment} Segment */

const LIST_MS = 1000;
const LISTED = 100;
const KEYS = "Arrow keys go from block to block, plus and minus zoom, 0 shows all, Escape lets the block go.";
const NO_MAP = "No map.";

export class MemoryMap {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    const ranks = page.session.run?.ranks?.map((one) => one.rank) ?? [0];
    const wanted = Number(page.app.router.place.view.get("rank"));
    this.rank = ranks.includes(wanted) ? wanted : (ranks[0] ?? 0);
    /** @type {{segment: number, address: number, size: number} | null} */
    this.picked = null;
    /** @type {number | null} text of the stack whose blocks stand out */
    this.litStack = null;
    this.gone = "";
    this.frames = 0;
    this.shown = "";
    this.listed_ms = 0;
    /** Timer of the next list, 0 without one. */
    this.listing = 0;
    this.opened_ms = performance.now();
    /** @type {import("../verdict.js").Verdict | null} */
    this.verdict = null;
    this.context = el("span", { class: "context" });
    this.controls = new MapControls(ranks, this.rank, { onRank: (rank) => this.chooseRank(rank), onRequest: () => this.redraw(), onColour: () => this.redraw(), onOrder: (order) => this.canvas.sort(order) });
    this.canvas = new MapCanvas({ onPick: (place) => this.pick(place), onHover: (place, event) => this.hover(place, event), onMoved: () => this.listSoon(), onResized: () => this.redraw() });
    this.request = new RequestBox();
    this.chip = el("div", { class: "map-chip", hidden: true });
    this.legend = el("div", { class: "legend map-legend" });
    this.list = el("ol", { class: "visually-hidden", "aria-label": "Blocks in view" });
    this.said = el("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
    this.notice = el("div", { class: "body map-notice" });
    this.drawing = el("div", { class: "map-drawing", role: "group", "aria-label": "Memory map" }, this.request.element, this.canvas.element, this.chip, this.legend, el("p", { class: "visually-hidden", id: "map-keys" }, KEYS), this.list, this.said);
    this.snapshots = new SnapshotLine(page);
    this.mapPanel = panel("Segments", [this.context, this.controls.element], this.notice, this.drawing, this.snapshots.element);
    this.blockBody = el("div", { class: "body" });
    this.fitsBody = el("div", { class: "body" });
    const walk = el("div", { class: "controls" }, el("button", { class: "button small", type: "button", "aria-label": "Previous block", click: () => this.walk(-1) }, "←"), el("button", { class: "button small", type: "button", "aria-label": "Next block", click: () => this.walk(1) }, "→"));
    this.element = el("div", { class: "map-grid" }, this.mapPanel, el("aside", { class: "rail", "aria-label": "Block and what fits" }, panel("Block", [walk], this.blockBody), panel("What fits now", [], this.fitsBody)));
    this.feed = new MapFeed(page.app.connection, page.id, this.rank, () => this.heard());
  }

  close() {
    clearTimeout(this.listing);
    this.feed.close();
    this.canvas.close();
  }

  themeChanged() {
    this.canvas.themeChanged();
    this.redraw();
  }

  /** Shown in the pill of the run: how often the map is looked at. */
  get pillNote() {
    const head = this.feed.map.head;
    if (!head || head.why_not) return null;
    if (head.rate_hz === 0) return "map on request";
    return head.rate_hz < 0.5 ? `map every ${Math.round(1 / head.rate_hz)} s` : `map ${Math.round(head.rate_hz * 10) / 10} Hz`;
  }

  heard() {
    this.frames++;
    this.page.changed();
  }

  /** @param {number} rank */
  chooseRank(rank) {
    this.rank = rank;
    this.page.app.router.note({ rank: String(rank) });
    this.feed.close();
    this.feed = new MapFeed(this.page.app.connection, this.page.id, rank, () => this.heard());
    this.opened_ms = performance.now();
    this.pick(null);
  }

  redraw() {
    this.shown = "";
    this.page.changed();
    this.update();
  }

  /**
   * A key that no part of the page has taken: up and down are left to scroll the page.
   * @param {string} key
   */
  onKey(key) {
    return key !== "ArrowUp" && key !== "ArrowDown" && this.canvas.key(key);
  }

  update() {
    const { feed } = this;
    this.snapshots.update(this.rank);
    const stand = mapStand({ run: this.page.session.run, rank: this.rank, map: feed.map, refused: feed.refused, waited_ms: performance.now() - this.opened_ms, silent_ms: feed.heard_ms ? performance.now() - feed.heard_ms : null });
    this.drawing.hidden = !stand.isDrawn;
    setAttribute(this.mapPanel, "data-stale", stand.isStale ? "true" : null);
    this.notice.hidden = !stand.notice;
    fillWhenChanged(this.notice, stand.notice + String(stand.mayAsk), () => [stand.notice && el("p", { class: "empty-line" }, stand.notice), stand.mayAsk && el("button", { class: "button small", type: "button", click: () => feed.askAgain() }, "Look now")]);
    const key = stand.isDrawn ? `${this.frames}/${stand.asOf}` : "none";
    if (key === this.shown) return;
    this.shown = key;
    if (stand.isDrawn) this.showMap(stand.asOf);
    else {
      this.verdict = null;
      setText(this.context, "");
      for (const body of [this.blockBody, this.fitsBody]) fill(body, el("p", { class: "empty-line" }, NO_MAP));
    }
  }

  /** @param {string} asOf */
  showMap(asOf) {
    const { map } = this.feed;
    const segments = [...map.segments.values()];
    const facts = mapFacts(segments);
    const palette = new Palette(map, this.controls.colourBy);
    this.controls.offerStacks(segments.some((segment) => segment.stacks.some((stack) => stack >= 0)));
    setText(this.context, [plural(segments.length, "segment"), `${count(facts.liveBlocks)} live blocks`, "area is bytes", map.head?.is_step_end ? null : "taken within a step", map.head?.summary].filter(Boolean).join(" · "));
    const place = this.place();
    if (this.picked && !place) this.gone = `The block of ${sizeText(this.picked.size)} at 0x${this.picked.address.toString(16)} is gone.`;
    const largest = facts.largestFree;
    const label = largest ? `largest free block ${sizeText(largest.segment.sizes[largest.index])}` : "";
    this.canvas.show(map, palette, { selected: place, largestFree: largest, label, lit: this.lit(), mainStream: facts.mainStream });
    this.showRequest(segments, facts, asOf);
    const { key, build } = legendOf(palette.legend(segments), segments, facts.mainStream);
    fillWhenChanged(this.legend, key, build);
    this.showCards(facts);
    this.listSoon();
  }

  /**
   * @param {Segment[]} segments
   * @param {MapFacts} facts
   * @param {string} asOf
   */
  showRequest(segments, facts, asOf) {
    const { head } = this.feed.map;
    if (!head) return;
    const typed = this.controls.request_bytes;
    const largest = facts.largestLive ? facts.largestLive.segment.requested[facts.largestLive.index] : 0;
    const request = typed ?? largest;
    const room = roomOf(head, facts.reserved);
    const fit = fitOf(segments, Math.max(1, request), facts, room);
    const isExpandable = segments.some((segment) => segment.isExpandable);
    this.verdict = request > 0 ? mapVerdict({ request, isTyped: typed !== null, fit, facts, room, limit_bytes: head.limit_bytes, isExpandable, asOf }) : null;
    this.request.show(request, fit, this.canvas.frame, typed !== null);
  }

  /** @param {MapFacts} facts */
  showCards(facts) {
    const { map } = this.feed;
    const place = this.place();
    refill(this.blockBody, ...blockCard(map, place, {
      sameStack: () => this.sameStack(place),
      isLit: this.litStack !== null,
      onLight: () => this.light(),
      snapshotsPath: this.page.pathOf("snapshots"),
      gone: this.gone,
    }));
    refill(this.fitsBody, ...fitsCard(map, facts, (one) => this.pick(one)));
  }

  /** The blocks of the same stack stand out, or no longer. */
  light() {
    const place = this.place();
    this.litStack = this.litStack === null && place ? place.segment.stacks[place.index] : null;
    this.redraw();
  }

  /** @returns {Place | null} */
  place() {
    const segment = this.picked ? this.feed.map.segments.get(this.picked.segment) : null;
    if (!segment || !this.picked) return null;
    const index = segment.offsets.indexOf(this.picked.address - segment.address);
    return index >= 0 && segment.sizes[index] === this.picked.size ? { segment, index } : null;
  }

  /** @param {Place | null} place */
  pick(place) {
    this.gone = "";
    this.litStack = null;
    this.picked = place && { segment: place.segment.address, address: place.segment.address + place.segment.offsets[place.index], size: place.segment.sizes[place.index] };
    setText(this.said, place ? blockLine(this.feed.map, place) : "");
    this.redraw();
  }

  /** @param {number} step */
  walk(step) {
    const next = blockBeside(this.canvas.packing, this.place(), step);
    if (!next) return;
    this.pick(next);
    this.canvas.reveal(next);
  }

  /** @param {Place | null} place */
  sameStack(place) {
    const stack = place ? place.segment.stacks[place.index] : -1;
    let blocks = 0;
    let bytes = 0;
    for (const segment of this.feed.map.segments.values()) {
      segment.stacks.forEach((one, i) => {
        if (one !== stack) return;
        blocks += segment.counts[i];
        bytes += segment.sizes[i];
      });
    }
    return { blocks, bytes };
  }

  lit() {
    if (this.litStack === null) return null;
    /** @type {Set<number>} */
    const addresses = new Set();
    for (const segment of this.feed.map.segments.values()) segment.stacks.forEach((one, i) => one === this.litStack && addresses.add(segment.address + segment.offsets[i]));
    return addresses;
  }

  /**
   * @param {Place | null} place
   * @param {PointerEvent | null} event
   */
  hover(place, event) {
    this.chip.hidden = !place || !event;
    if (!place || !event) return;
    setText(this.chip, blockLine(this.feed.map, place));
    const box = this.drawing.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 12, box.width - this.chip.offsetWidth - 8);
    this.chip.style.transform = `translate(${Math.max(4, left)}px, ${event.clientY - box.top + 14}px)`;
  }

  /** For screen readers: what is in view, and not more often than it can be read. */
  listSoon() {
    if (this.listing) return;
    this.listing = setTimeout(() => {
      this.listing = 0;
      this.listed_ms = performance.now();
      this.listBlocks();
    }, Math.max(0, this.listed_ms + LIST_MS - performance.now()));
  }

  listBlocks() {
    fill(this.list, ...this.canvas.inView(LISTED).map((place) => el("li", {}, el("button", { type: "button", tabindex: -1, click: () => this.pick(place) }, blockLine(this.feed.map, place)))));
  }
}
