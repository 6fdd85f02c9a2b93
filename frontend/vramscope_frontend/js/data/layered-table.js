// Rows of one kind of one rank at three depths: the whole run coarsely, one range finely, and the
// newest rows as they were measured.

import { appendRows, emptyTable, overlay } from "../series.js";
import { rangeToRefine } from "../downsampling.js";

/** @typedef {import("../series.js").Table} Table */

export class LayeredTable {
  /**
   * @param {string[]} fields
   * @param {number} capacity newest rows that are kept as measured
   */
  constructor(fields, capacity) {
    this.fields = fields;
    this.capacity = capacity;
    this.coarse = emptyTable(fields);
    this.recent = emptyTable(fields);
    /** @type {{x0: number, x1: number, table: Table} | null} */
    this.detail = null;
    this.version = 0;
    /** @type {{version: number, table: Table} | null} */
    this.joined = null;
  }

  get isEmpty() {
    return this.coarse.x.length === 0 && this.recent.x.length === 0;
  }

  get first() {
    return Math.min(this.coarse.x[0] ?? Infinity, this.recent.x[0] ?? Infinity);
  }

  get last() {
    return Math.max(this.coarse.x.at(-1) ?? -Infinity, this.recent.x.at(-1) ?? -Infinity);
  }

  /**
   * @param {number[]} x
   * @param {number[]} t
   * @param {import("../messages.js").Columns} columns
   */
  addLive(x, t, columns) {
    if (appendRows(this.recent, x, t, columns, this.capacity) > 0) this.version++;
  }

  /** @param {Table} table */
  setCoarse(table) {
    this.coarse = table;
    this.version++;
  }

  /** Rows that were missed while the feed was cut cannot be told from rows that never were. */
  forgetRecent() {
    this.recent = emptyTable(this.fields);
    this.version++;
  }

  /**
   * The newest stretch of the run as fetched; rows that came live meanwhile stay.
   * @param {Table} table
   */
  setRecent(table) {
    if (table.binWidth > 0) return this.setDetail(table.x[0] ?? 0, table.x.at(-1) ?? 0, table);
    this.recent = overlay(table, this.recent);
    this.version++;
  }

  /**
   * Rows as measured that belong between older rows and the newest: they take their place.
   * @param {Table} table
   */
  close(table) {
    if (table.binWidth > 0 || table.x.length === 0) return;
    this.recent = overlay(this.recent, table);
    this.version++;
  }

  /**
   * @param {number} x0
   * @param {number} x1
   * @param {Table} table
   */
  setDetail(x0, x1, table) {
    this.detail = { x0, x1, table };
    this.version++;
  }

  /** A hole between the coarse rows and the newest ones: the newest outgrew their capacity. */
  get isTorn() {
    return this.recent.x.length > 1 && this.coarse.x.length > 1 && this.recent.x[0] > this.coarse.x[this.coarse.x.length - 1] + 2 * Math.max(1, this.coarse.binWidth);
  }

  /**
   * The finest rows at hand for a range (rows outside of it may be coarser or absent).
   * @param {number} x0
   * @returns {Table}
   */
  view(x0) {
    if (this.recent.x.length && this.recent.x[0] <= x0) return this.recent;
    if (this.joined?.version === this.version) return this.joined.table;
    let table = this.coarse;
    if (this.detail) table = overlay(table, this.detail.table);
    table = overlay(table, this.recent);
    this.joined = { version: this.version, table };
    return table;
  }

  /** @returns {Table} */
  whole() {
    return this.view(-Infinity);
  }

  /**
   * @param {number} x0
   * @param {number} x1
   * @param {number} width_px
   */
  rangeToRefine(x0, x1, width_px) {
    const detail = this.detail && { x0: this.detail.x0, x1: this.detail.x1, binWidth: this.detail.table.binWidth };
    return rangeToRefine({ coarseBinWidth: this.coarse.binWidth, detail, recentFrom: this.recent.x[0] ?? Infinity }, Math.max(x0, this.first), Math.min(x1, this.last), width_px);
  }
}
