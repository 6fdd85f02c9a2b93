// The header of the panel "Memory": which rank, what is drawn, over what, how far back.

import { el, fillWhenChanged, setAttribute, setText } from "../dom.js";
import { deviceName } from "../limits.js";
import { Segmented } from "./parts.js";

/** @typedef {import("../memory-view.js").MemoryView} MemoryView */

/**
 * @typedef {object} ControlHandlers
 * @property {(rank: number | null) => void} onRank
 * @property {(device: number | null) => void} onDevice
 * @property {(drawn: MemoryView["drawn"]) => void} onDrawn
 * @property {(xKind: MemoryView["xKind"]) => void} onAxis
 * @property {(window: MemoryView["window"]) => void} onWindow
 * @property {() => void} onScale
 * @property {() => void} onFollow
 * @property {() => void} onTable
 */

export class MemoryControls {
  /** @param {ControlHandlers} handlers */
  constructor(handlers) {
    this.hasSteps = true;
    this.context = el("span", { class: "context" });
    const select = el("select", { class: "select", "aria-label": "Rank", hidden: true });
    select.addEventListener("change", () => handlers.onRank(select.value === "all" ? null : Number(select.value)));
    this.rankSelect = select;
    const devices = el("select", { class: "select", "aria-label": "Device", hidden: true });
    devices.addEventListener("change", () => handlers.onDevice(devices.value === "" ? null : Number(devices.value)));
    this.deviceSelect = devices;
    this.drawn = new Segmented("What is drawn", [{ value: "composition", text: "Composition" }, { value: "lines", text: "Lines" }], handlers.onDrawn);
    this.axis = new Segmented("Horizontal axis", [{ value: "step", text: "Step" }, { value: "time", text: "Time" }], handlers.onAxis);
    this.window = new Segmented("Stretch that is shown", [{ value: "2m", text: "2 min" }, { value: "10m", text: "10 min" }, { value: "run", text: "Whole run" }, { value: "forecast", text: "Run + forecast" }], handlers.onWindow);
    this.scaleButton = el("button", { class: "button", type: "button", "aria-pressed": "false", click: handlers.onScale }, "Moving part");
    this.followLabel = el("span", {}, "Following");
    this.followButton = el("button", { class: "button follow", type: "button", "aria-pressed": "true", title: "Keep the newest step in view (f)", click: handlers.onFollow }, el("span", { class: "dot" }), this.followLabel);
    this.tableButton = el("button", { class: "button", type: "button", "aria-pressed": "false", title: "What is drawn, as a table", click: handlers.onTable }, "Table");
    this.element = el("header", {}, el("h2", {}, "Memory"), select, devices, this.context, el("div", { class: "controls" }, this.drawn.element, this.scaleButton, this.axis.element, this.window.element, this.followButton, this.tableButton));
  }

  /** @param {boolean} hasSteps */
  offerSteps(hasSteps) {
    this.hasSteps = hasSteps;
  }

  /**
   * @param {MemoryView} view
   * @param {import("../memory-view.js").Defaults} defaults
   */
  show(view, defaults) {
    const all = view.rank === null;
    const forecasts = defaults.window === "forecast";
    this.window.hide("forecast", !forecasts);
    // Three choices at most: with a forecast the shortest stretch gives way.
    this.window.hide("2m", forecasts && view.window !== "2m");
    this.drawn.choose(view.drawn);
    this.axis.choose(all ? "time" : view.xKind);
    this.window.choose(view.range ? null : view.window);
    this.axis.disable("step", all ? "All ranks are shown over time." : this.hasSteps ? null : view.device === null ? "No optimizer step was seen yet." : "Steps are told of the device on which they end; of this one there are samples.");
    for (const value of /** @type {const} */ (["composition", "lines"])) this.drawn.disable(value, all ? "Choose one rank to see its composition." : null);
    if (all) this.drawn.choose(null);
    this.scaleButton.hidden = all;
    setAttribute(this.scaleButton, "aria-pressed", view.y === "moving" ? "true" : "false");
    setAttribute(this.scaleButton, "title", view.y === "moving" ? "Back to the full height of the device (y)" : "Begin the vertical axis just below what never changes (y)");
    setAttribute(this.followButton, "aria-pressed", view.range ? "false" : "true");
    this.rankSelect.value = all ? "all" : String(view.rank);
  }

  /**
   * @param {string} context
   * @param {number} ranks
   * @param {MemoryView} view
   * @param {boolean} isLive nothing more comes of a run that is not: there is an end to see instead
   * @param {import("../messages.js").DeviceInfo[]} devices of the rank that is shown, the one in full first
   */
  showRun(context, ranks, view, isLive, devices) {
    setText(this.followLabel, view.range ? (isLive ? "Follow" : "To the end") : isLive ? "Following" : "At the end");
    this.followButton.classList.toggle("idle", !isLive);
    // With several ranks the choice beside it says which one.
    const named = ranks > 1 ? context.replace(/^rank \d+ · /, "") : context;
    const many = devices.length > 1;
    setText(this.context, many ? named.split(" · ").filter((part) => !devices.some((one) => deviceName(one) === part)).join(" · ") : named);
    this.deviceSelect.hidden = !many;
    const offered = fillWhenChanged(this.deviceSelect, JSON.stringify(devices.map(deviceName)), () => devices.map((one, i) => el("option", { value: i === 0 ? "" : one.index }, deviceName(one))));
    if (offered || !many) this.deviceSelect.value = view.device === null ? "" : String(view.device);
    this.rankSelect.hidden = ranks <= 1;
    const rebuilt = fillWhenChanged(this.rankSelect, String(ranks), () => [el("option", { value: "all" }, `All ${ranks} ranks`), ...Array.from({ length: ranks }, (_, rank) => el("option", { value: rank }, `Rank ${rank}`))]);
    if (rebuilt) this.rankSelect.value = view.rank === null ? "all" : String(view.rank);
  }

  /** @param {boolean} showsTable */
  showTable(showsTable) {
    setAttribute(this.tableButton, "aria-pressed", showsTable ? "true" : "false");
    setText(this.tableButton, showsTable ? "Chart" : "Table");
  }
}
