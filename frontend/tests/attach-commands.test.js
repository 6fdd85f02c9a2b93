import assert from "node:assert/strict";
import test from "node:test";
import * as commands from "../vramscope_frontend/js/attach-commands.js";

/** @returns {any} */
const session = (/** @type {any} */ server) => ({ scopes: [], name: "", server: { version: "", host: "127.0.0.1", port: 8470, found_by_jobs: true, ...server } });
/** @returns {any} */
const job = (/** @type {number} */ pid, /** @type {any} */ changes = {}) => ({ pid, user: "ada", command: "python train.py", python: "3.11", torch: "2.13.0", gpu_bytes: null, gpus: [], attachable: true, why_not: null, fix: null, attached: false, workers: 0, started_ns: 1, container: false, run: null, ...changes });

test("a server that jobs find needs no address", () => {
  const target = commands.targetOf(session({}), "http://localhost:8470");
  assert.deepEqual(target, { isLocal: true, isFound: true, url: "http://localhost:8470", port: 8470 });
  assert.equal(commands.attachCommand(41327, target), "vramscope attach 41327");
});

test("any other server has to be named, and its token stays out of the list of processes", () => {
  const target = commands.targetOf(session({ host: "0.0.0.0", found_by_jobs: false }), "http://gpu-box:8470");
  assert.equal(commands.attachCommand(5, target), "VRAMSCOPE_TOKEN=TOKEN vramscope attach --url http://gpu-box:8470 5");
  assert.equal(commands.runCommandLine(target), "VRAMSCOPE_TOKEN=TOKEN vramscope run --url http://gpu-box:8470 train.py --lr 3e-4");
});

test("another machine needs a token, and a way to a server that listens to its own only", () => {
  const local = commands.elsewhereCommands(commands.targetOf(session({}), "http://127.0.0.1:8470"));
  assert.deepEqual(local.map((one) => one.command.split(" ").slice(0, 3).join(" ")), ["vramscope token create", "ssh -N -R", "VRAMSCOPE_TOKEN=TOKEN vramscope run"]);
  const open = commands.elsewhereCommands(commands.targetOf(session({ host: "0.0.0.0", found_by_jobs: false }), "https://gpu-box"));
  assert.equal(open.at(-1)?.command, "VRAMSCOPE_TOKEN=TOKEN vramscope run --url https://gpu-box train.py");
  assert.equal(open.length, 2);
});

test("without a session the address of the page tells as much", () => {
  assert.equal(commands.targetOf(null, "http://127.0.0.1:9000").port, 9000);
  assert.equal(commands.targetOf(null, "https://gpu-box").isFound, false);
  assert.equal(commands.targetOf(null, "https://gpu-box").port, 443);
});

test("what can be attached to comes first, the largest on top", () => {
  const sorted = commands.sortJobs([job(1, { attachable: false }), job(2), job(3, { gpu_bytes: 9 }), job(4, { attached: true, gpu_bytes: 99 })]);
  assert.deepEqual(sorted.map((one) => one.pid), [3, 2, 4, 1]);
});

test("a job in words, what is not known left out", () => {
  assert.equal(commands.jobFacts(job(41327, { gpus: [{ index: 0 }], gpu_bytes: 61.4 * 2 ** 30 })), "pid 41327, GPU 0, 61.4 GiB");
  assert.equal(commands.jobFacts(job(7, { gpus: [{ index: 1 }, { index: 2 }] })), "pid 7, GPUs 1, 2");
  assert.equal(commands.jobDetails(job(7, { workers: 4, container: true, torch: null })), "ada · Python 3.11 · 4 workers · in a container");
});

test("why a job cannot be attached to, and what helps", () => {
  assert.equal(commands.jobObstacle(job(7)), "");
  assert.equal(commands.jobObstacle(job(7, { attachable: false, attached: true })), "");
  assert.equal(commands.jobObstacle(job(7, { attachable: false, why_not: "it belongs to lin", fix: "sudo vramscope attach 7" })), "It belongs to lin. sudo vramscope attach 7");
  assert.equal(commands.jobObstacle(job(7, { attachable: false })), "It cannot be attached to.");
});
