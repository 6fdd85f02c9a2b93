// "Attach…" on the list of runs: what trains on this machine, or how to find out.

import { attachCommand, targetOf } from "../attach-commands.js";
import { MachineJobs } from "../data/machine-jobs.js";
import { el, fill, fillWhenChanged } from "../dom.js";
import { plural } from "../format.js";
import { copyLine } from "./copy-line.js";
import { jobList, jobsKey } from "./job-list.js";
import { failedPart } from "./parts.js";

/** @typedef {import("../app.js").App} App */

/** @param {App} app */
export function openAttachDialog(app) {
  if (document.querySelector("dialog[open]")) return;
  const target = targetOf(app.session, location.origin);
  const body = el("div", { class: "body" });
  const context = el("span", { class: "context" });
  const close = el("button", { class: "button", type: "button", click: () => dialog.close() }, "Close");
  const machine = new MachineJobs(() => app.session?.server.attach_list === true, () => show());
  const dialog = el("dialog", { "aria-labelledby": "attach-title", keydown: (/** @type {KeyboardEvent} */ event) => event.stopPropagation(), click: (/** @type {MouseEvent} */ event) => event.target instanceof Element && event.target.closest("a") && dialog.close(), close: () => {
    machine.stop();
    dialog.remove();
  } });
  const show = () => {
    const { jobs, error } = machine;
    if (!machine.isAllowed) {
      fillWhenChanged(body, "not allowed", () => [
        el("p", { class: "sentence" }, "See what trains on a machine, then attach to it."),
        el("p", { class: "sub" }, "Needs no change to the job and no restart."),
        el("ol", { class: "commands" }, el("li", {}, el("div", { class: "command" }, ...copyLine("vramscope ps", { primary: true }))), el("li", {}, el("div", { class: "command" }, ...copyLine(attachCommand("PID", target))))),
        el("p", { class: "ink3" }, "This page lists them itself when its server was started with --allow-attach and you sit at its machine."),
      ]);
      return;
    }
    fill(context, jobs ? plural(jobs.length, "training process", "training processes") : "");
    if (error) fillWhenChanged(body, error.message, () => [failedPart("The processes of this machine", error, () => void machine.ask())]);
    else if (!jobs) fillWhenChanged(body, "looking", () => [el("p", { class: "ink2" }, "Looking at the processes of this machine…")]);
    else if (jobs.length === 0) fillWhenChanged(body, "none", () => [el("p", { class: "sentence" }, "No training process runs on this machine now."), el("p", { class: "sub" }, "Looked for Python processes that have loaded torch or hold GPU memory. One that starts shows up here by itself.")]);
    else fillWhenChanged(body, jobsKey(jobs), () => [jobList(jobs, target)]);
  };
  fill(dialog, el("header", {}, el("h2", { id: "attach-title" }, "Attach to a running job"), context, el("div", { class: "controls" }, el("kbd", {}, "Esc"))), body, el("footer", {}, el("span", { class: "left ink3" }, "Copy a command and run it in a shell. The page itself starts nothing."), close));
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
  show();
  machine.look();
}
