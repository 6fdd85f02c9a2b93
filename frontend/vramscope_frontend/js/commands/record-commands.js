// Commands that take snapshots and record allocations, as the page offers them.

import { SAME } from "./command-words.js";

/** @type {import("./catalogue.js").CommandEntry[]} */
export const RECORD_COMMANDS = [
  {
    name: "snapshot",
    title: "Take a snapshot",
    menu: "Take snapshot…",
    summary: "Reads every segment and block as it is at the end of the next step. Who allocated them is in it only while a history is being recorded.",
    needsControl: true,
    dryRun: false,
    place: "step boundary",
    verb: "Take a snapshot",
    costs: [["Pause", "while the blocks are read: about 0.3 ms for 1,000 blocks, 16 ms for 50,000"], ["Then", "written and sent by a process of its own, behind the live data"], SAME],
    params: [{ key: "traces", label: "With the history", kind: "flag", value: false, note: "Every entry recorded so far; refused where no history is being recorded." }],
  },
  {
    name: "history_start",
    title: "Record allocations",
    menu: "Record allocations…",
    summary: "Records each allocation and who made it, from the end of the next step on. After the steps asked for it takes a snapshot and stops by itself.",
    needsControl: true,
    dryRun: false,
    place: "step boundary",
    verb: "Record",
    costs: [["Each allocation", "with its free about 0.8 µs longer with the stacks of allocations, 0.5 with live blocks only, 1.3 with frees too; more with deep stacks"], ["Host memory", "the oldest entries go when the limit is reached"], ["Your own recording", "is never touched: if the script records already, this is refused"], SAME],
    params: [
      { key: "steps", label: "Steps", kind: "number", value: 3, min: 1, max: 100_000, optional: true, note: "Empty: until it is stopped." },
      { key: "mode", label: "What", kind: "choice", value: "alloc", options: [{ value: "alloc", text: "every event, stacks of allocations" }, { value: "all", text: "every event, stacks of frees too" }, { value: "state", text: "live blocks only" }] },
      { key: "max_mib", label: "Host memory at most", kind: "number", value: 256, unit: "MiB", min: 16, max: 65_536 },
      { key: "backward_lines", label: "Name the forward line of what the backward pass allocates", kind: "flag", value: false, note: "Dear: PyTorch's anomaly mode takes the stack of every operation. A step of 25 ms took 240 where it was measured. torch 2.10 and newer." },
    ],
  },
  {
    name: "history_dump",
    title: "Snapshot of the recording",
    menu: "Snapshot of the recording…",
    summary: "Takes a snapshot with the history recorded so far; recording goes on.",
    needsControl: true,
    dryRun: false,
    place: "step boundary",
    verb: "Take a snapshot",
    costs: [["Pause", "while blocks and entries are read, at the end of a step: some microseconds for each"], SAME],
  },
  {
    name: "history_stop",
    title: "Stop recording",
    menu: "Stop recording…",
    summary: "Stops a recording that was started here and forgets what it holds. Take a snapshot first if it is wanted.",
    needsControl: true,
    dryRun: false,
    place: "step boundary",
    verb: "Stop recording",
    costs: [SAME],
  },
];
