// The commands of this version as the page offers them: words, rights, what they do not do.

/** @typedef {"free" | "collect" | "free+collect" | "peaks" | "text"} CommandKind */

/**
 * @typedef {object} CommandEntry
 * @property {string} name as the protocol has it
 * @property {string} title
 * @property {string} menu
 * @property {string} summary
 * @property {boolean} needsControl
 * @property {boolean} dryRun
 * @property {string} verb begins the label of the button that does it
 * @property {string[][]} costs rows "what", "how much"
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
];

/** @param {string} name */
export function commandEntry(name) {
  return CATALOGUE.find((entry) => entry.name === name);
}

/** @param {string} name */
export function commandTitle(name) {
  return commandEntry(name)?.title ?? name;
}
