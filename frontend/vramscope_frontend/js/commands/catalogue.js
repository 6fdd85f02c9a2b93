// The commands of this version as the page offers them: words, rights, what they do not do.

/** @typedef {"free" | "collect" | "free+collect" | "peaks" | "text"} CommandKind */

/**
 * @typedef {object} CommandEntry
 * @property {string} name as the protocol has it
 * @property {string} title
 * @property {string | null} menu null: not offered on the page, which asks by itself when it needs it
 * @property {string} summary
 * @property {boolean} needsControl
 * @property {boolean} dryRun
 * @property {string} verb begins the label of the button that does it
 * @property {string[][]} costs rows "what", "how much"
 * @property {ParamField[]} [params] what a person may choose
 */

/**
 * One parameter in the dialog. A number that may be left empty is `optional`: empty means none.
 * @typedef {object} ParamField
 * @property {string} key as the protocol has it
 * @property {string} label
 * @property {"number" | "choice" | "flag"} kind
 * @property {number | string | boolean} value chosen at first
 * @property {string} [unit]
 * @property {number} [min]
 * @property {number} [max]
 * @property {boolean} [optional]
 * @property {{value: string, text: string}[]} [options]
 * @property {string} [note] what it costs or means
 */

const BOUNDARY = ["When", "at the end of the next step; gives up after 30 s"];
const SAME = ["Training", "results unchanged"];

/** @type {CommandEntry[]} */
export const CATALOGUE = [
  {
    name: "empty_cache",
    title: "Free the cache",
    menu: "Free cache…",
    summary: "Gives cached, unused segments back to the device.",
    needsControl: true,
    dryRun: true,
    verb: "Free",
    costs: [["Pause", "one synchronisation of the device at the end of a step"], ["Next step", "slower: it takes memory from the device again"], BOUNDARY, SAME],
  },
  {
    name: "empty_cache+gc_collect",
    title: "Collect garbage, then free the cache",
    menu: "Collect garbage, then free cache…",
    summary: "Collects garbage first, so that segments held only by reference cycles can go back as well.",
    needsControl: true,
    dryRun: true,
    verb: "Free",
    costs: [["Pause", "a full garbage collection and one synchronisation at the end of a step"], ["Next step", "slower: it takes memory from the device again"], BOUNDARY, SAME],
  },
  {
    name: "gc_collect",
    title: "Collect garbage",
    menu: "Collect garbage…",
    summary: "Runs a full Python garbage collection. What it frees stays in PyTorch's cache; how much that is cannot be known before.",
    needsControl: true,
    dryRun: false,
    verb: "Collect garbage",
    costs: [["Pause", "a full garbage collection at the end of a step"], BOUNDARY, SAME],
  },
  {
    name: "reset_peaks",
    title: "Reset peaks",
    menu: "Reset peaks…",
    summary: "Sets the allocator's peak counters to the current values. Nothing is freed. max_memory_allocated() of the script starts again from here.",
    needsControl: true,
    dryRun: false,
    verb: "Reset peaks",
    costs: [BOUNDARY, SAME],
  },
  {
    name: "memory_summary",
    title: "Memory summary",
    menu: "Memory summary…",
    summary: "PyTorch's own memory summary, as text.",
    needsControl: false,
    dryRun: false,
    verb: "Ask",
    costs: [],
  },
  {
    name: "stats",
    title: "Allocator counters",
    menu: "Allocator counters…",
    summary: "Every counter of the caching allocator.",
    needsControl: false,
    dryRun: false,
    verb: "Ask",
    costs: [],
  },
  {
    name: "snapshot",
    title: "Take a snapshot",
    menu: "Take snapshot…",
    summary: "Reads every segment and block as it is at the end of the next step. Who allocated them is in it only while a history is being recorded.",
    needsControl: true,
    dryRun: false,
    verb: "Take a snapshot",
    costs: [["Pause", "while the blocks are read: about 0.3 ms for 1,000 blocks, 16 ms for 50,000"], ["Then", "written and sent by a process of its own, behind the live data"], BOUNDARY, SAME],
    params: [{ key: "traces", label: "With the history", kind: "flag", value: false, note: "Every entry recorded so far; refused where no history is being recorded." }],
  },
  {
    name: "history_start",
    title: "Record allocations",
    menu: "Record allocations…",
    summary: "Records each allocation and who made it, from the end of the next step on. After the steps asked for it takes a snapshot and stops by itself.",
    needsControl: true,
    dryRun: false,
    verb: "Record",
    costs: [["Each allocation", "with its free about 0.8 µs longer with the stacks of allocations, 0.5 with live blocks only, 1.3 with frees too; more with deep stacks"], ["Host memory", "the oldest entries go when the limit is reached"], ["Your own recording", "is never touched: if the script records already, this is refused"], BOUNDARY, SAME],
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
    verb: "Take a snapshot",
    costs: [["Pause", "while blocks and entries are read, at the end of a step: some microseconds for each"], BOUNDARY, SAME],
  },
  {
    name: "history_stop",
    title: "Stop recording",
    menu: "Stop recording…",
    summary: "Stops a recording that was started here and forgets what it holds. Take a snapshot first if it is wanted.",
    needsControl: true,
    dryRun: false,
    verb: "Stop recording",
    costs: [BOUNDARY, SAME],
  },
  {
    name: "profile_modules",
    title: "Memory by module",
    menu: "Memory by module…",
    summary: "Watches for a few steps what each module keeps for the backward pass and needs at its peak.",
    needsControl: true,
    dryRun: false,
    verb: "Watch",
    costs: [["Steps watched", "slower: a reading at each border of a module"], BOUNDARY, SAME],
    params: [{ key: "steps", label: "Steps", kind: "number", value: 3, min: 1, max: 50 }],
  },
  {
    name: "explain_growth",
    title: "What grows",
    menu: "What grows…",
    summary:
      "Compares live memory at the ends of some steps: which lines hold more and more of it, and what keeps it.",
    needsControl: false,
    dryRun: false,
    verb: "Look",
    costs: [
      ["Steps watched", "at most 2 % slower: each allocation is noted with its line"],
      BOUNDARY,
      SAME,
    ],
    params: [
      { key: "looks", label: "Step ends compared", kind: "number", value: 4, min: 3, max: 12 },
      { key: "every", label: "Steps between two", kind: "number", value: 1, min: 1, max: 1000 },
    ],
  },
  {
    name: "watch_map",
    title: "Watch the memory map",
    menu: null,
    summary: "Sends the memory map for some seconds; the page of the map asks for it by itself.",
    needsControl: false,
    dryRun: false,
    verb: "Watch",
    costs: [],
  },
  {
    name: "oom_report",
    title: "Report what fills the memory",
    menu: null,
    summary: "Writes the report of an out-of-memory without one; the server asks for it when another rank runs out.",
    needsControl: false,
    dryRun: false,
    verb: "Report",
    costs: [],
  },
];

/** @param {string} name */
export function commandEntry(name) {
  return CATALOGUE.find((entry) => entry.name === name);
}

/** @param {string} name */
export function commandTitle(name) {
  return commandEntry(name)?.title ?? name;
}
