// Live memory over the recording, and beside it what each layer holds at the cursor.

import { readTokens } from "../charts/theme.js";
import { el, fillWhenChanged, setText } from "../dom.js";
import { count, exactBytes, inUnit, known, sizeText, tableUnit } from "../format.js";
import { groupText, layerColours, layerOrder } from "../snapshots/layer-colours.js";
import { recordingBands } from "../snapshots/recording-bands.js";
import { placeText, RecordingChart } from "../snapshots/recording-chart.js";
import { indexOfMoment, stepIndexAt, stepRange, stepTextAt } from "../snapshots/recording-steps.js";
import { dataTable, failedPart, panel, Segmented } from "./parts.js";

/** @typedef {import("./snapshot.js").Snapshot} Snapshot */
/** @typedef {import("../messages.js").RecordingTimeline} RecordingTimeline */

const MOST_TABLE_ROWS = 200;

export class RecordingPanel {
  /** @param {Snapshot} view */
  constructor(view) {
    this.view = view;
    /** @type {number | null} */
    this.limit = null;
    this.by = new Segmented("Layers", [{ value: "stack", text: "Stack" }, { value: "line", text: "Line" }, { value: "category", text: "Category" }, { value: "size", text: "Size" }], (by) => view.setView({ by }));
    this.moment = el("span", { class: "moment-name" });
    this.momentLabel = el("span", { class: "ink2" }, "Moment");
    this.devices = el("select", { class: "select", "aria-label": "Device", hidden: true, change: () => view.setDevice(Number(this.devices.value)) });
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ act) => el("button", { type: "button", title, click: act }, text);
    this.steps = el("div", { class: "segmented", role: "group", "aria-label": "Move the cursor" }, button("‹ Step", "Highest moment of the step before ([)", () => view.moveStep(-1)), button("Step ›", "Highest moment of the next step (])", () => view.moveStep(1)), button("Peak", "Highest moment of the recording (p)", () => view.goToPeak()));
    this.whole = el("button", { class: "button small", type: "button", title: "The whole recording (0)", click: () => view.showWhole() }, "Whole recording");
    this.asTable = el("button", { class: "button small", type: "button", "aria-pressed": "false", click: () => this.toggleTable() }, "Table");
    this.compare = el("button", { class: "button small", type: "button", click: () => view.growth.toggle() }, "Compare with…");
    this.download = el("a", { class: "button small", target: "_self", download: true }, "Download");
    this.controls = el("div", { class: "controls" }, this.devices, this.momentLabel, this.moment, this.steps, this.whole, this.asTable, this.compare, this.download);
    this.chart = new RecordingChart(() => this.model(), {
      onPoint: () => undefined,
      onPin: (x) => view.setCursor(x),
      onZoom: (range) => view.zoomTo(range),
      onPan: (delta) => view.pan(delta),
      onWheel: (factor, at) => view.zoomBy(factor, at),
      onBack: () => view.goBack(),
      onError: (error) => this.problem.replaceChildren(failedPart("The chart library", error, () => location.reload())),
    });
    this.problem = el("div", {});
    this.note = el("p", { class: "recording-note" });
    this.rows = el("div", { class: "held-wrap" });
    this.tableHost = el("div", { class: "chart-table", tabindex: 0, hidden: true });
    this.body = el("div", { class: "memory-body recording-body" }, this.chart.host, this.tableHost, this.rows);
    this.byLabel = el("span", { class: "ink2" }, "by");
    this.element = panel("Live memory", [this.byLabel, this.by.element, this.controls], this.problem, this.note, this.body);
  }

  close() {
    this.chart.close();
  }

  toggleTable() {
    const shown = this.tableHost.hidden;
    this.tableHost.hidden = !shown;
    this.chart.host.hidden = shown;
    this.asTable.setAttribute("aria-pressed", shown ? "true" : "false");
    this.asTable.textContent = shown ? "Chart" : "Table";
    this.update();
  }

  /** @returns {import("../snapshots/recording-chart.js").ChartModel | null} */
  model() {
    const { view } = this;
    if (!view.timeline) return null;
    return { timeline: view.timeline, range: view.range, origin: view.origin, limit_bytes: view.page.summary?.limit.bytes ?? null, cursor: view.cursorX, bands: recordingBands(view.timeline, view.info?.rank === null || !view.info ? [] : view.page.session.phases.of(view.info.rank), view.data.rows) };
  }

  update() {
    const { view } = this;
    const { timeline, error } = view;
    const limit = view.page.summary?.limit.bytes ?? null;
    if (limit !== this.limit) {
      this.limit = limit;
      this.chart.invalidate();
    }
    this.by.choose(view.view.by);
    this.download.setAttribute("href", view.pickleAddress);
    // A frame has no session that a plain link could use.
    this.download.hidden = document.documentElement.dataset.frame !== undefined || view.info?.state !== "complete";
    const has_history = view.facts?.has_history !== false;
    this.body.hidden = !timeline || !has_history;
    for (const part of [this.whole, this.asTable, this.by.element, this.byLabel, this.moment, this.momentLabel, this.steps]) part.hidden = !has_history || !timeline;
    this.compare.hidden = !timeline;
    this.compare.disabled = !has_history && (view.page.session.snapshots ?? []).filter((info) => info.state === "complete").length < 2;
    this.compare.title = this.compare.disabled ? "There is no other snapshot of this run to compare it with." : "";
    fillWhenChanged(this.problem, error ? error.message : "", () => (error ? [failedPart("This snapshot", error, () => view.reload())] : []));
    fillWhenChanged(this.note, this.noteText(), () => [this.noteText(), has_history ? null : el("a", { href: view.page.pathOf("map") }, " The map shows how the blocks lie.")]);
    this.note.hidden = this.noteText() === "";
    this.showDevices();
    this.whole.disabled = view.range[0] <= view.whole[0] && view.range[1] >= view.whole[1];
    if (!timeline || !has_history) return;
    const index = view.cursorIndex;
    const { unit } = timeline;
    const at = timeline.x[index];
    const step = stepTextAt(timeline.steps, at);
    const begin = stepRange(timeline.steps, stepIndexAt(timeline.steps, at), view.whole)[0];
    setText(this.moment, [step, `${placeText(at, begin, unit)}${unit === "us" && step ? " in" : ""}`, sizeText(timeline.total[index], 2), timeline.moments[index] === timeline.peak ? "highest" : timeline.moments[index] === timeline.window_peak ? "highest shown" : ""].filter(Boolean).join(" · "));
    this.showRows(timeline, index);
    if (!this.tableHost.hidden) this.showTable(timeline);
  }

  noteText() {
    const { view } = this;
    if (view.info?.state === "receiving") return "It opens here by itself as soon as it is complete.";
    if (view.info && view.info.state !== "complete") return "What came of it cannot be read. Take another one while the job runs.";
    if (view.error) return "";
    if (!view.facts) return "Opening the snapshot…";
    if (!view.facts.has_history) return "No history was recorded with this snapshot: below is what was live when it was taken.";
    const { unseen_allocs, unseen_frees } = view.facts;
    if (unseen_allocs || unseen_frees) return `While the snapshot was being taken ${count(unseen_allocs)} blocks came and ${count(unseen_frees)} went; they are not in its history.`;
    return "";
  }

  showDevices() {
    const { facts } = this.view;
    const several = (facts?.devices.length ?? 0) > 1;
    this.devices.hidden = !several;
    if (!facts || !several) return;
    fillWhenChanged(this.devices, JSON.stringify(facts.devices), () => facts.devices.map((device) => el("option", { value: device }, `Device ${device}`)));
    this.devices.value = String(facts.device);
  }

  /**
   * @param {RecordingTimeline} timeline
   * @param {number} index
   */
  showRows(timeline, index) {
    const { groups, bytes, by } = timeline;
    const theme = document.documentElement.dataset.theme ?? "system";
    fillWhenChanged(this.rows, [by, timeline.moments[index], timeline.start, timeline.end_x, theme].join("/"), () => {
      const unit = tableUnit(Math.max(timeline.total[index], timeline.reserved[index]));
      const colours = layerColours(groups, layerOrder(groups, bytes), readTokens(), by);
      const order = groups.map((_, i) => i).sort((a, b) => bytes[b][index] - bytes[a][index] || a - b);
      const row = (/** @type {import("../dom.js").Child[]} */ name, /** @type {number} */ value, /** @type {string} */ title, className = "") =>
        el("tr", { class: className }, el("td", { title }, ...name), el("td", { class: "number", title: exactBytes(value) }, inUnit(value, unit)));
      const lines = order.map((i) => {
        const mark = el("span", { class: "swatch" });
        mark.style.background = colours[i];
        const text = groupText(groups[i], by);
        return row([mark, text], bytes[i][index], groups[i].file ? `${text}\n${groups[i].file}` : text, bytes[i][index] === 0 ? "zero" : "");
      });
      const name = by === "size" ? "Size of the block" : by === "category" ? "Category" : by === "line" ? "Line" : "Stack";
      return [el("table", { class: "held", "aria-label": "Live memory at the cursor" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, `${name}, at the cursor`), el("th", { scope: "col", class: "number" }, unit.name))),
        el("tbody", {}, ...lines),
        el("tbody", {}, row(["Live"], timeline.total[index], "Blocks in use, or freed and waiting for another stream", "sum"), row(["Reserved"], timeline.reserved[index], "Segments taken from the device")))];
    });
  }

  /** @param {RecordingTimeline} timeline */
  showTable(timeline) {
    fillWhenChanged(this.tableHost, `${timeline.by}/${timeline.start}/${timeline.end_x}`, () => {
      const unit = tableUnit(Math.max(...timeline.reserved, ...timeline.total));
      const every = Math.max(1, Math.ceil(timeline.x.length / MOST_TABLE_ROWS));
      const rows = timeline.x.flatMap((x, i) => (i % every === 0 || timeline.moments[i] === timeline.window_peak ? [[placeText(x, this.view.origin, timeline.unit), ...timeline.bytes.map((layer) => inUnit(layer[i], unit)), inUnit(timeline.total[i], unit), inUnit(timeline.reserved[i], unit)]] : []));
      return [dataTable([">At", ...timeline.groups.map((group) => `>${groupText(group, timeline.by)}`), ">Live", `>Reserved, ${unit.name}`], rows, "What the chart draws")];
    });
  }

  /** @param {number | null} moment */
  indexOf(moment) {
    const { timeline } = this.view;
    return timeline && known(moment) ? indexOfMoment(timeline.moments, moment) : 0;
  }
}
