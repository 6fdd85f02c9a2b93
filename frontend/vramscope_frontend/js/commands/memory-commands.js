// Commands that give memory back or reset its counters, as the page offers them.

import { SAME } from "./command-words.js";

/** @type {import("./catalogue.js").CommandEntry[]} */
export const MEMORY_COMMANDS = [
  {
    name: "empty_cache",
    title: "Free the cache",
    menu: "Free cache…",
    summary: "Gives cached, unused segments back to the device.",
    needsControl: true,
    dryRun: true,
    place: "step boundary",
    sameStep: true,
    not: "It does not free what tensors hold, nor a segment that is partly in use. A leak stays a leak.",
    verb: "Free",
    costs: [["Pause", "one synchronisation of the device at the end of a step"], ["Next step", "slower: it takes memory from the device again"], SAME],
  },
  {
    name: "empty_cache+gc_collect",
    title: "Collect garbage, then free the cache",
    menu: "Collect garbage, then free cache…",
    summary: "Collects garbage first, so that segments held only by reference cycles can go back as well.",
    needsControl: true,
    dryRun: true,
    place: "step boundary",
    sameStep: true,
    not: "It does not free what the program still reaches, nor a segment that is partly in use.",
    verb: "Free",
    costs: [["Pause", "a full garbage collection and one synchronisation at the end of a step"], ["Next step", "slower: it takes memory from the device again"], SAME],
  },
  {
    name: "gc_collect",
    title: "Collect garbage",
    menu: "Collect garbage…",
    summary: "Runs a full Python garbage collection. What it frees stays in PyTorch's cache; how much that is cannot be known before.",
    needsControl: true,
    dryRun: false,
    place: "step boundary",
    not: "It gives nothing back to the device by itself, and frees nothing that the program still reaches.",
    verb: "Collect garbage",
    costs: [["Pause", "a full garbage collection at the end of a step"], SAME],
  },
  {
    name: "reset_peaks",
    title: "Reset peaks",
    menu: "Reset peaks…",
    summary: "Sets the allocator's peak counters to the current values. Nothing is freed. max_memory_allocated() of the script starts again from here.",
    needsControl: true,
    dryRun: false,
    place: "step boundary",
    not: "It frees no memory.",
    verb: "Reset peaks",
    costs: [SAME],
  },
];
