// The training processes of this machine, one a row, each with the command that attaches to it. The
// page only lists them: attaching is code in another process, and stays a command that is typed.

import { attachCommand, jobDetails, jobFacts, jobObstacle, sortJobs } from "../attach-commands.js";
import { el } from "../dom.js";
import { pathOf } from "../router.js";
import { copyLine } from "./copy-line.js";

/** @typedef {import("../messages.js").MachineJob} MachineJob */
/** @typedef {import("../attach-commands.js").Target} Target */

/**
 * @param {MachineJob[]} jobs
 * @param {Target} target
 */
export function jobList(jobs, target) {
  return el("ul", { class: "jobs", "aria-label": "Training processes of this machine" }, ...sortJobs(jobs).map((job) => jobRow(job, target)));
}

/** What a list depends on: it is not built again while the reader marks a command in it. @param {MachineJob[]} jobs */
export function jobsKey(jobs) {
  return JSON.stringify(sortJobs(jobs).map((job) => [job.pid, job.command, jobFacts(job), jobDetails(job), job.attached, jobObstacle(job), job.run]));
}

/**
 * @param {MachineJob} job
 * @param {Target} target
 */
function jobRow(job, target) {
  return el("li", {},
    el("div", { class: "job" }, el("b", { title: job.command }, job.command), el("span", {}, jobFacts(job)), el("small", {}, jobDetails(job))),
    ...(job.attached ? [attachedNote(job)] : job.attachable ? [el("div", { class: "command" }, ...copyLine(attachCommand(job.pid, target)))] : [el("p", { class: "obstacle" }, jobObstacle(job))]));
}

/** @param {MachineJob} job */
export function attachedNote(job) {
  return el("p", { class: "attached" }, "Attached already", job.run ? ": " : "; its run is not on this server.", job.run ? el("a", { href: pathOf("overview", job.run.id) }, job.run.name) : null);
}
