// First start: commands to copy, the running jobs of this machine found for you. The page changes by
// itself when the first run registers.

import { attachCommand, elsewhereCommands, jobFacts, jobObstacle, runCommandLine, sortJobs, targetOf } from "../attach-commands.js";
import { MachineJobs } from "../data/machine-jobs.js";
import { el, fillWhenChanged, setAttribute, setText } from "../dom.js";
import { plural } from "../format.js";
import { copyLine } from "./copy-line.js";
import { attachedNote, jobList, jobsKey } from "./job-list.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../attach-commands.js").Target} Target */
/** @typedef {import("../dom.js").Child} Child */

const NEEDS_NOTHING = "Needs no change and no restart.";

export class FirstStart {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.machine = new MachineJobs(() => app.session?.server.attach_list === true, () => this.update());
    this.running = el("div", { class: "way" });
    this.others = el("div", {});
    this.ways = el("div", {});
    this.stays = el("span", {});
    this.address = el("code", {});
    this.pillText = el("span", {}, "Waiting for the first run");
    this.elsewhere = el("div", { class: "way elsewhere", id: "elsewhere", hidden: true });
    this.toggle = el("button", { class: "button link", type: "button", "aria-expanded": "false", "aria-controls": "elsewhere", click: () => this.toggleElsewhere() }, "Make a token and a command to paste there");
    this.element = el("section", { class: "first-start", "aria-label": "First start" },
      el("h1", {}, "No run yet. Start one of these; it shows up here by itself."),
      el("p", {}, "Listening on ", this.address, this.stays),
      this.running, this.others, this.ways,
      el("div", { class: "first-foot" }, el("div", { class: "pill", "data-shape": "ring" }, el("span", { class: "dot" }), this.pillText), el("span", {}, "Other machine? ", this.toggle)),
      this.elsewhere);
  }

  close() {
    this.machine.stop();
  }

  /** The page is on the screen, or is not any more. @param {boolean} shown */
  show(shown) {
    this.element.hidden = !shown;
    if (shown) {
      this.machine.look();
      this.update();
    } else this.machine.stop();
  }

  get target() {
    return targetOf(this.app.session, location.origin);
  }

  update() {
    const { target } = this;
    setText(this.address, location.host);
    setText(this.stays, target.isLocal ? ". Nothing leaves this machine." : ".");
    setText(this.pillText, this.app.link.state === "open" ? "Waiting for the first run" : "Reconnecting to the server");
    this.showRunning(target);
    fillWhenChanged(this.ways, JSON.stringify(target), () => [
      way("A job you are about to start", runCommandLine(target), "Also under torchrun, accelerate, SLURM and mpirun"),
      way("No GPU at hand", "vramscope demo", "A small training job, on the GPU if there is one, else on an emulated device"),
      way("A snapshot file you have", "vramscope replay snapshot.pickle", "What the allocator did, and would have done under other settings. It is read as data, nothing in it is run"),
    ]);
    fillWhenChanged(this.elsewhere, JSON.stringify(target), () => elsewhereCommands(target).flatMap((step) => [el("p", {}, step.where), ...copyLine(step.command)]));
  }

  /** @param {Target} target */
  showRunning(target) {
    const jobs = sortJobs(this.machine.jobs ?? []);
    const [first, ...rest] = jobs;
    const { command, note } = this.offer(first, target);
    fillWhenChanged(this.running, JSON.stringify([command, jobsKey(first ? [first] : []), this.machine.error?.message, this.machine.jobs === null, this.machine.isAllowed]), () => [el("h2", {}, "A job that is already running"), ...copyLine(command, { primary: true }), el("p", {}, ...note)]);
    fillWhenChanged(this.others, jobsKey(rest), () => (rest.length ? [el("div", { class: "way more-jobs" }, el("h2", {}, `${plural(rest.length, "more", "more")} on this machine`), jobList(rest, target))] : []));
    setAttribute(this.others, "hidden", rest.length === 0);
  }

  /**
   * The command for the job that was found first, or how to find one.
   * @param {import("../messages.js").MachineJob | undefined} job
   * @param {Target} target
   * @returns {{command: string, note: Child[]}}
   */
  offer(job, target) {
    const { machine } = this;
    if (!machine.isAllowed) return { command: "vramscope ps", note: [`Lists the training processes of a machine; then `, el("code", {}, attachCommand("PID", target)), `. ${NEEDS_NOTHING}`] };
    if (machine.error) return { command: "vramscope ps", note: [`${machine.error.message}.`] };
    if (!job) return { command: attachCommand("PID", target), note: [NEEDS_NOTHING, machine.jobs ? " No training process runs on this machine now." : " Looking at the processes of this machine…"] };
    const found = [" Found on this machine: ", el("b", {}, job.command), `, ${jobFacts(job)}`];
    if (job.attached) return { command: attachCommand(job.pid, target), note: [attachedNote(job), ...found] };
    return { command: attachCommand(job.pid, target), note: [job.attachable ? NEEDS_NOTHING : jobObstacle(job), ...found] };
  }

  toggleElsewhere() {
    this.elsewhere.hidden = !this.elsewhere.hidden;
    setAttribute(this.toggle, "aria-expanded", String(!this.elsewhere.hidden));
    if (!this.elsewhere.hidden) this.elsewhere.scrollIntoView({ block: "nearest" });
  }
}

/**
 * @param {string} title
 * @param {string} command
 * @param {string} note
 */
function way(title, command, note) {
  return el("div", { class: "way" }, el("h2", {}, title), ...copyLine(command), el("p", {}, note));
}
