// A report of running out of memory for tests: 3 GiB allowed, 198 MiB asked for, 166 MiB left.

const MIB = 2 ** 20;

/** @returns {any} */
export const madeReport = (changes = {}) => ({
  time_ns: 60e9, step: 31, phase: "", part: "forward", thread: "MainThread", source: "observer", message: "CUDA out of memory.",
  request_bytes: 198 * MIB, segment_bytes: 198 * MIB, allowed_bytes: 3072 * MIB, device_free_bytes: 100_000 * MIB, device_total_bytes: 143_000 * MIB,
  counters: { "allocated_bytes.all.current": 2485 * MIB, "active_bytes.all.current": 2485 * MIB, "reserved_bytes.all.current": 2906 * MIB, num_alloc_retries: 3 },
  by_category: { "category.parameters_bytes": 64 * MIB, "category.gradients_bytes": 229 * MIB, "category.optimizer_state_bytes": 128 * MIB },
  free_blocks: [], by_stack: [], by_size: [], largest: [], garbage_bytes: null, processes: [], outside: [], settings: "", threads: [], recovered_step: null,
  steps: { time_ns: [1e9, 2e9, 3e9], number: [28, 29, 30], columns: { "step.peak_allocated_bytes": [100, 200, 300], "step.peak_reserved_bytes": [400, 400, 500], num_alloc_retries: [0, 2, 2] } },
  samples: { time_ns: [], number: [], columns: {} },
  ...changes,
});

/** @returns {any} */
export const madeAnswer = (changes = {}) => ({ id: "o1", run: "r", rank: 0, time_ns: 60e9, step: 31, phase: "", part: "forward", source: "observer", request_bytes: 198 * MIB, allowed_bytes: 3072 * MIB, is_fatal: true, recovered_step: null, linked_to: null, state: "complete", summary: null, severity: null, siblings: [], report: madeReport(), finding: null, ...changes });
