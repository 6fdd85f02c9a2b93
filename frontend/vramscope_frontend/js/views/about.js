// About: can I trust these numbers? Cost, losses, versions, rights, devices, definitions.

import { api } from "../api.js";
import { el, fillWhenChanged } from "../dom.js";
import { clockWithUtc, count, exactBytes, known, sizeText } from "../format.js";
import { livesTable, restartsLine } from "./lives.js";
import { dataTable, failedPart, panel } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../messages.js").Rank} Rank */
/** @typedef {import("../dom.js").Child} Child */

export class About {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.cost = el("div", { class: "body rank-list" });
    this.losses = el("div", { class: "body" });
    this.lives = el("div", { class: "body rank-list" });
    this.versions = el("div", { class: "body" });
    this.rights = el("div", { class: "body" });
    this.devices = el("div", { class: "body rank-list" });
    this.identity = el("div", { class: "body" });
    this.series = el("div", { class: "body rank-list", tabindex: 0 });
    const wide = panel("Cost of watching", [el("span", { class: "context" }, "measured by the agent itself, about once a second")], this.cost);
    wide.classList.add("wide");
    const names = panel("What the numbers mean", [], this.series);
    names.classList.add("wide");
    const left = el("div", { class: "rail" }, panel("Losses", [], this.losses), panel("Restarts", [], this.lives), panel("Devices", [], this.devices), panel("This run", [], this.identity));
    const right = el("div", { class: "rail" }, panel("Rights", [], this.rights), panel("Versions", [], this.versions));
    this.element = el("div", { class: "columns" }, wide, left, right, names);
    void this.loadNames();
  }

  close() {}

  async loadNames() {
    try {
      const names = await api.seriesNames();
      this.series.replaceChildren(dataTable(["Series", "Unit", "Definition"], names.map((one) => [el("code", {}, one.name), one.unit, one.definition]), "Series"));
    } catch (error) {
      this.series.replaceChildren(failedPart("The definitions", /** @type {Error} */ (error), () => void this.loadNames()));
    }
  }

  update() {
    const run = this.page.session.run;
    if (!run) return;
    const ranks = run.ranks ?? [];
    this.fill(this.cost, ranks.map((rank) => [rank.rank, rank.status, rank.samples_received]), () => [
      dataTable(["Rank", ">Rate, Hz", ">CPU, % of a core", ">Waiting in memory", ">Waiting on disk", ">Errors swallowed", ">Samples", ">Steps", "Notes"],
        ranks.map(({ rank, status, samples_received, steps_received }) => [String(rank), status ? String(Math.round(status.rate_hz * 10) / 10) : "–", status ? (status.cost_fraction * 100).toFixed(2) : "–", status ? sizeText(status.outbox_bytes ?? 0) : "–", status ? sizeText(status.spool_bytes ?? 0) : "–", status ? count(status.guard_errors ?? 0) : "–", count(samples_received), count(steps_received), (status?.notes ?? []).join("; ") || "none"]), "Cost of watching by rank"),
    ]);
    this.fill(this.losses, ranks.map((rank) => [rank.samples_lost, rank.losses]), () => this.lossLines(ranks));
    const line = restartsLine(run, this.page.app.clock.now_ns());
    this.fill(this.lives, [line, ranks.map((rank) => [rank.state, rank.lives])], () => [el("p", { class: "lives-line" }, line), livesTable(run)]);
    this.fill(this.rights, [this.page.app.scopes, ranks.map((rank) => [rank.allow, rank.commands])], () => this.rightLines(ranks));
    this.fill(this.devices, ranks.map((rank) => rank.devices), () => [
      dataTable(["Rank", "Device", "Name", ">Memory", "UUID"], ranks.flatMap((rank) => rank.devices.map((device) => [String(rank.rank), device.emulated ? "emulated" : `cuda:${device.index}`, device.name, el("span", { title: exactBytes(device.total_bytes) }, sizeText(device.total_bytes) + (known(device.limit_bytes) ? `, limited to ${sizeText(device.limit_bytes)}` : "")), el("code", {}, device.uuid || "–")])), "Devices"),
    ]);
    this.fill(this.versions, [ranks.map((rank) => rank.software), this.page.app.session], () => this.versionLines(ranks));
    this.fill(this.identity, [run.id, run.name, ranks.length], () => [
      el("dl", { class: "facts" }, ...[["Name", run.name], ["Id", el("code", {}, run.id)], ["Script", run.script || "not known"], ["User", run.user || "not known"], ["Started", clockWithUtc(run.started_ns)], ["Launcher", launcherText(ranks)], ["Hosts", [...new Set(ranks.map((rank) => rank.host))].slice(0, 8).join(", ")], ["Processes", ranks.slice(0, 8).map((rank) => `rank ${rank.rank}: pid ${rank.pid}`).join(", ") + (ranks.length > 8 ? ", …" : "")]].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    ]);
  }

  /**
   * @param {HTMLElement} element
   * @param {unknown} key
   * @param {() => Child[]} build
   */
  fill(element, key, build) {
    fillWhenChanged(element, JSON.stringify(key), build);
  }

  /**
   * @param {Rank[]} ranks
   * @returns {Child[]}
   */
  lossLines(ranks) {
    const reasons = ranks.flatMap((rank) => Object.entries(rank.losses ?? {}).filter(([, lost]) => lost > 0).map(([reason, lost]) => [String(rank.rank), reason, count(lost)]));
    const total = ranks.reduce((sum, rank) => sum + rank.samples_lost, 0);
    return [
      total === 0 && reasons.length === 0 ? el("p", { class: "empty-line" }, "Nothing was lost: every sample that was taken is stored.") : dataTable(["Rank", "Reason", ">Lost"], reasons.length ? reasons : [["all", "not said", count(total)]], "Losses"),
    ];
  }

  /**
   * @param {Rank[]} ranks
   * @returns {Child[]}
   */
  rightLines(ranks) {
    const { scopes, session } = this.page.app;
    const allowed = ranks.filter((rank) => rank.allow === "control").length;
    const commands = [...new Set(ranks.flatMap((rank) => rank.commands))];
    return [el("dl", { class: "facts" }, ...[["You", session?.name || "not known"], ["Your scopes", scopes.join(", ") || "none"], ["Agents that allow control", `${allowed} of ${ranks.length}`], ["Commands they accept", commands.join(", ") || "none"]].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])), el("p", { class: "ink3" }, "The agent has the last word: what it does not allow, no token can ask for.")];
  }

  /**
   * @param {Rank[]} ranks
   * @returns {Child[]}
   */
  versionLines(ranks) {
    const names = [...new Set(ranks.flatMap((rank) => Object.keys(rank.software)))];
    const rows = names.map((name) => [name, [...new Set(ranks.map((rank) => rank.software[name] ?? "–"))].join(", ")]);
    const server = this.page.app.session?.server;
    if (server) rows.push(["vramscope server", `${server.version} on ${server.host}:${server.port}`]);
    return [dataTable(["Software", "Version"], rows, "Versions")];
  }
}

/** @param {Rank[]} ranks */
function launcherText(ranks) {
  const names = [...new Set(ranks.flatMap((rank) => [rank.launcher, rank.job]).filter(Boolean))];
  return names.length ? names.join(", ") : "none, or not known";
}
