// Snapshots: what was recorded of this run, and how to record more?

import { api } from "../api.js";
import { el, fillWhenChanged } from "../dom.js";
import { clockWithUtc, count, day, exactBytes, known, sizeText } from "../format.js";
import { ageText, contentsText, nameOf, originText, stateText } from "../snapshots/snapshot-words.js";
import { isAsked, outcomeText } from "../oom/oom-words.js";
import { dataTable, failedPart, panel } from "./parts.js";

/** @typedef {import("./run-page.js").RunPage} RunPage */
/** @typedef {import("../messages.js").SnapshotInfo} SnapshotInfo */

export class Snapshots {
  /** @param {RunPage} page */
  constructor(page) {
    this.page = page;
    this.take = el("button", { class: "button small", type: "button", click: () => page.openCommand("snapshot") }, "Take snapshot…");
    this.record = el("button", { class: "button small", type: "button", click: () => page.openCommand("history_start") }, "Record next 3 steps…");
    this.file = el("input", { type: "file", hidden: true, "aria-label": "Snapshot file", change: () => void this.upload() });
    this.pick = el("button", { class: "button small", type: "button", click: () => this.file.click() }, "Upload…");
    this.problem = el("div", {});
    this.body = el("div", { class: "body rank-list" });
    this.costs = el("div", { class: "body" },
      el("dl", { class: "facts" },
        el("dt", {}, "A snapshot"), el("dd", {}, "What is live now, without who allocated it unless a history is being recorded. The job pauses at the end of a step while its blocks are read: about 0.3 ms for 1,000 blocks, 16 ms for 50,000."),
        el("dt", {}, "A recording"), el("dd", {}, "Every allocation of some steps with the line that made it, then a snapshot of it. Each allocation takes about 0.8 µs longer while it lasts, more with deep stacks."),
        el("dt", {}, "An upload"), el("dd", {}, "A file of torch.cuda.memory._dump_snapshot(), zipped or not. Nothing in it is executed.")));
    this.ooms = el("div", { class: "body rank-list" });
    this.oomPanel = panel("Out of memory", [el("span", { class: "context" }, "written at that moment, before the exception went its way")], this.ooms);
    this.element = el("div", { class: "rail one" }, this.oomPanel, panel("Snapshots", [el("div", { class: "controls" }, this.take, this.record, this.pick, this.file)], this.problem, this.body), panel("What they cost", [], this.costs));
    void page.session.loadSnapshots();
    void page.session.loadOoms();
  }

  close() {}

  async upload() {
    const file = this.file.files?.[0];
    if (!file) return;
    this.file.value = "";
    this.pick.disabled = true;
    this.pick.textContent = `Uploading ${file.name}…`;
    try {
      const info = await api.uploadSnapshot(this.page.id, file);
      this.page.app.router.go(this.page.snapshotPath(info.id));
    } catch (error) {
      this.problem.replaceChildren(failedPart(`${file.name} was not stored`, /** @type {Error} */ (error), () => this.file.click()));
    } finally {
      this.pick.disabled = false;
      this.pick.textContent = "Upload…";
    }
  }

  /** @param {SnapshotInfo} info */
  async remove(info) {
    try {
      await api.deleteSnapshot(info.id);
      await this.page.session.loadSnapshots();
    } catch (error) {
      this.problem.replaceChildren(failedPart(`${nameOf(info)} was not deleted`, /** @type {Error} */ (error), () => void this.remove(info)));
    }
  }

  update() {
    const { page } = this;
    this.showOoms();
    const { snapshots, snapshotsError: error } = page.session;
    const { actions } = page;
    for (const [button, name] of /** @type {const} */ ([[this.take, "snapshot"], [this.record, "history_start"]])) {
      const why = actions.reasonOf(name, page.session.run, page.app.link, page.app.scopes);
      button.disabled = why !== null;
      button.title = why ?? "What it costs comes first; nothing is done yet.";
    }
    const mayUpload = page.app.scopes.includes("control");
    this.pick.disabled = !mayUpload;
    this.pick.title = mayUpload ? "" : "Your token has no control right.";
    if (error) {
      fillWhenChanged(this.body, error.message, () => [failedPart("The list of snapshots", error, () => void page.session.loadSnapshots())]);
      return;
    }
    if (!snapshots) return;
    fillWhenChanged(this.body, JSON.stringify([snapshots, mayUpload]), () => (snapshots.length === 0 ? [emptyLine()] : [this.table(snapshots, mayUpload)]));
  }

  /**
   * @param {SnapshotInfo[]} snapshots
   * @param {boolean} mayDelete
   */
  table(snapshots, mayDelete) {
    const now_ns = this.page.app.clock.now_ns();
    const rows = snapshots.map((info) => {
      const state = stateText(info);
      const name = state === null ? el("a", { href: this.page.snapshotPath(info.id) }, nameOf(info)) : el("span", {}, nameOf(info));
      const actions = el("span", { class: "row-actions" },
        state === null && document.documentElement.dataset.frame === undefined ? el("a", { href: api.pickleAddress(info.id), download: true, target: "_self" }, "Download") : null,
        mayDelete && info.state !== "receiving" ? el("button", { class: "button link", type: "button", "aria-label": `Delete ${nameOf(info)}`, click: (/** @type {Event} */ event) => this.askToDelete(info, /** @type {HTMLElement} */ (event.currentTarget)) }, "Delete") : null);
      return [name, el("span", { title: `${clockWithUtc(info.taken_ns)}, ${ageText(info, now_ns)}` }, day(info.taken_ns, now_ns)), known(info.step) ? count(info.step) : "–", known(info.rank) ? String(info.rank) : "–", contentsText(info), el("span", { title: info.issued_by ? `by ${info.issued_by}` : "" }, originText(info)), el("span", { title: exactBytes(info.raw_bytes) }, sizeText(info.raw_bytes)), state === null ? "stored" : el("span", { class: info.state === "receiving" ? "" : "warn" }, state), actions];
    });
    return dataTable(["Snapshot", "Taken", ">Step", ">Rank", "Holds", "Origin", ">File", "State", ""], rows, "Snapshots of this run, newest first");
  }

  /** Reports of running out of memory; without any there is nothing to say here. */
  showOoms() {
    const { ooms, run } = this.page.session;
    const many = (run?.world_size ?? 1) > 1;
    const now_ns = this.page.app.clock.now_ns();
    this.oomPanel.hidden = ooms.length === 0;
    fillWhenChanged(this.ooms, JSON.stringify(ooms), () => [dataTable(["Report", "When", ">Step", ...(many ? [">Rank"] : []), ">Asked for", "Where", "What came of it", "Verdict"], ooms.map((row) => {
      const asked = row.request_bytes ?? row.segment_bytes;
      const isBad = row.is_fatal && !isAsked(row);
      return [el("a", { href: this.page.oomPath(row.id) }, isAsked(row) ? "State of this rank" : "Out of memory"), el("span", { title: clockWithUtc(row.time_ns) }, day(row.time_ns, now_ns)), known(row.step) ? count(row.step) : "–", ...(many ? [String(row.rank)] : []), sizeText(asked), row.part || row.phase || "–", el("span", { class: isBad ? "crit" : null }, outcomeText(row)), row.summary ?? "–"];
    }), "Times out of memory, newest first")]);
  }

  /**
   * The first click asks, the second does.
   * @param {SnapshotInfo} info
   * @param {HTMLElement} button
   */
  askToDelete(info, button) {
    if (button.dataset.sure) {
      void this.remove(info);
      return;
    }
    button.dataset.sure = "yes";
    button.textContent = "Delete for good?";
    button.addEventListener("blur", () => {
      delete button.dataset.sure;
      button.textContent = "Delete";
    }, { once: true });
  }
}

function emptyLine() {
  return el("p", { class: "empty-line" }, "No snapshot of this run yet. Record the next steps to see which line allocates what, or take one to see how the blocks lie.");
}
