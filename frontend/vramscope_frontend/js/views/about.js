// About: can I trust these numbers? Cost, losses, versions, rights, devices, definitions.

import { api } from "../api.js";
import { el, fillWhenChanged } from "../dom.js";
import { trustVerdict } from "../account.js";
import { clockWithUtc, count, exactBytes, known, sizeText } from "../format.js";
import { deviceFields } from "../host-figures.js";
import { AccountPanel } from "./account-panel.js";
import { FindingsPanel } from "./findings.js";
import { HostPanel } from "./host-panel.js";
import { livesTable, restartsLine } from "./lives.js";
import { dataTable, failedPart, panel } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../messages.js").Rank} Rank */
/** @typedef {import("../dom.js").Child} Child */

/** Findings about what is shown here. */
const OF_THE_AGENT = new Set(["agent_degraded", "recording_overhead"]);

export class About {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.account = new AccountPanel();
    this.findings = new FindingsPanel(page, { kinds: OF_THE_AGENT });
    this.host = new HostPanel(page, () => this.update());
    this.losses = el("div", { class: "body" });
    this.lives = el("div", { class: "body rank-list" });
    this.versions = el("div", { class: "body" });
    this.rights = el("div", { class: "body" });
    this.devices = el("div", { class: "body rank-list" });
    this.identity = el("div", { class: "body" });
    this.series = el("div", { class: "body rank-list", tabindex: 0 });
    this.account.element.classList.add("wide");
    this.host.element.classList.add("wide");
    const names = panel("What the numbers mean", [], this.series);
    names.classList.add("wide");
    const left = el("div", { class: "rail" }, panel("Losses", [], this.losses), this.findings.element, panel("Restarts", [], this.lives), panel("Devices", [], this.devices));
    const right = el("div", { class: "rail" }, panel("Rights", [], this.rights), panel("Versions", [], this.versions), panel("This run", [], this.identity));
    this.element = el("div", { class: "columns" }, this.account.element, this.host.element, left, right, names);
    void this.loadNames();
  }

  close() {
    this.host.close();
  }

  /** The question of this page is not that of the run: whether its numbers can be trusted. */
  get verdict() {
    const { run, store } = this.page.session;
    return trustVerdict(run?.ranks ?? [], store.state.findings);
  }

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
    this.account.update(ranks);
    this.findings.update();
    this.fill(this.losses, ranks.map((rank) => [rank.samples_lost, rank.losses]), () => this.lossLines(ranks));
    const line = restartsLine(run, this.page.app.clock.now_ns());
    this.fill(this.lives, [line, ranks.map((rank) => [rank.state, rank.lives])], () => [el("p", { class: "lives-line" }, line), livesTable(run)]);
    this.fill(this.rights, [this.page.app.scopes, ranks.map((rank) => [rank.allow, rank.commands])], () => this.rightLines(ranks));
    this.fill(this.devices, [ranks.map((rank) => rank.devices), [...this.host.values].map(([rank, values]) => [rank, this.furtherValues(ranks, rank, values)])], () => this.deviceLines(ranks));
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
   * What is shown of devices beside the first: those the charts are about.
   * @param {Rank[]} ranks
   * @param {number} rank
   * @param {Record<string, number | null>} values
   */
  furtherValues(ranks, rank, values) {
    const devices = ranks.find((one) => one.rank === rank)?.devices.slice(1) ?? [];
    return devices.map((device) => deviceFields(device.index).map((name) => values[name] ?? null));
  }

  /**
   * @param {Rank[]} ranks
   * @returns {Child[]}
   */
  deviceLines(ranks) {
    const several = ranks.some((rank) => rank.devices.length > 1);
    const rows = ranks.flatMap((rank) => rank.devices.map((device, i) => {
      const [allocated, reserved, used] = deviceFields(device.index).map((name) => this.host.values.get(rank.rank)?.[name]);
      return [String(rank.rank), device.emulated ? "emulated" : deviceName(device), device.name, el("span", { title: exactBytes(device.total_bytes) }, sizeText(device.total_bytes) + (known(device.limit_bytes) ? `, limited to ${sizeText(device.limit_bytes)}` : "")), el("code", {}, device.uuid || "–"),
        several && (i === 0 ? "in the charts" : `${sizeText(allocated)} allocated, ${sizeText(reserved)} reserved, ${sizeText(used)} in use by all`)];
    }));
    return [dataTable(["Rank", "Device", "Name", ">Memory", "UUID", ...(several ? ["Last known"] : [])], several ? rows : rows.map((row) => row.slice(0, 5)), "Devices")];
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

/** @param {import("../messages.js").DeviceInfo} device */
function deviceName(device) {
  return `${device.backend || "cuda"}:${device.index}`;
}
