// What to type to have a job watched: words of commands, and of the jobs that were found. Pure.

import { known, plural, sizeText } from "./format.js";

/** @typedef {import("./messages.js").MachineJob} MachineJob */
/** @typedef {import("./messages.js").Session} Session */

/**
 * Where commands have to send their data to: nothing where jobs find this server by themselves.
 * @typedef {object} Target
 * @property {boolean} isLocal nobody but this machine can reach the server
 * @property {boolean} isFound jobs of this machine find it
 * @property {string} url as the browser reaches it
 * @property {number} port
 */

/**
 * @param {Session | null} session
 * @param {string} origin address of the page
 * @returns {Target}
 */
export function targetOf(session, origin) {
  const { hostname, port, protocol } = new URL(origin);
  const host = session?.server.host ?? hostname;
  return { isLocal: isLoopback(host), isFound: session?.server.found_by_jobs ?? isLoopback(host), url: origin, port: session?.server.port || Number(port) || (protocol === "https:" ? 443 : 80) };
}

/** @param {string} host */
function isLoopback(host) {
  return host === "localhost" || host.endsWith(".localhost") || host.startsWith("127.") || host === "::1" || host === "[::1]";
}

/**
 * @param {string} verb with what comes after the options
 * @param {string} rest
 * @param {Target} target
 */
function command(verb, rest, target) {
  return target.isFound ? `vramscope ${verb} ${rest}` : `VRAMSCOPE_TOKEN=TOKEN vramscope ${verb} --url ${target.url} ${rest}`;
}

/** @param {number | string} pid @param {Target} target */
export const attachCommand = (pid, target) => command("attach", String(pid), target);

/** @param {Target} target */
export const runCommandLine = (target) => command("run", "train.py --lr 3e-4", target);

/**
 * For a job on another machine, in order: what to type, and where.
 * @param {Target} target
 * @returns {{where: string, command: string}[]}
 */
export function elsewhereCommands(target) {
  const url = target.isLocal ? `http://127.0.0.1:${target.port}` : target.url;
  return [
    { where: "On this server's machine, once: a token that may only deliver data", command: "vramscope token create --scope agent --name other-machine" },
    ...(target.isLocal ? [{ where: "Also here: this server listens to its own machine only, so bring its port over there", command: `ssh -N -R ${target.port}:127.0.0.1:${target.port} OTHER-MACHINE` }] : []),
    { where: "On the other machine, with that token", command: `VRAMSCOPE_TOKEN=TOKEN vramscope run --url ${url} train.py` },
  ];
}

/**
 * Jobs that a command can be given for first, the largest of them on top.
 * @param {MachineJob[]} jobs
 */
export function sortJobs(jobs) {
  const order = (/** @type {MachineJob} */ job) => (job.attached ? 1 : job.attachable ? 0 : 2);
  return [...jobs].sort((a, b) => order(a) - order(b) || (b.gpu_bytes ?? -1) - (a.gpu_bytes ?? -1) || b.started_ns - a.started_ns);
}

/**
 * "pid 41327, GPU 0, 61.4 GiB": what tells one job from another.
 * @param {MachineJob} job
 */
export function jobFacts(job) {
  const gpus = job.gpus.length ? `${job.gpus.length === 1 ? "GPU" : "GPUs"} ${job.gpus.map((gpu) => gpu.index).join(", ")}` : null;
  return [`pid ${job.pid}`, gpus, known(job.gpu_bytes) && job.gpu_bytes > 0 ? sizeText(job.gpu_bytes) : null].filter(Boolean).join(", ");
}

/**
 * "ada · Python 3.11 · torch 2.13.0 · 4 workers · in a container".
 * @param {MachineJob} job
 */
export function jobDetails(job) {
  return [job.user, job.python && `Python ${job.python}`, job.torch && `torch ${job.torch}`, job.workers > 0 && plural(job.workers, "worker"), job.container && "in a container"].filter(Boolean).join(" · ");
}

/**
 * Why no command is offered for a job; empty where one is.
 * @param {MachineJob} job
 */
export function jobObstacle(job) {
  if (job.attached || job.attachable) return "";
  const why = job.why_not ?? "it cannot be attached to";
  const sentence = `${why.charAt(0).toUpperCase()}${why.slice(1)}.`;
  return job.fix ? `${sentence} ${job.fix}` : sentence;
}
