// The commands of this version as the page offers them: words, rights, what they do not do.

import { LOOK_COMMANDS } from "./look-commands.js";
import { MEMORY_COMMANDS } from "./memory-commands.js";
import { RECORD_COMMANDS } from "./record-commands.js";
import { SETTING_COMMANDS } from "./setting-commands.js";
import { TRAINING_COMMANDS } from "./training-commands.js";

/**
 * @typedef {object} CommandEntry
 * @property {string} name as the protocol has it
 * @property {string} title
 * @property {string | null} menu null: not offered on the page, which asks by itself when it needs it
 * @property {string} summary
 * @property {boolean} needsControl
 * @property {boolean} dryRun
 * @property {"step boundary" | "agent thread"} place
 * @property {boolean} [sameStep] at the end of one step on all its ranks, or on none
 * @property {boolean} [wholeRun] on all ranks of the run, or not at all
 * @property {boolean} [changesTraining] a person confirms it once more
 * @property {boolean} [isOwn] declared by the job itself
 * @property {boolean} [dangerous] what it ends does not come back
 * @property {string} [consent] what changes, for the person who confirms it
 * @property {string} [not] what it does not do
 * @property {string} verb begins the label of the button that does it; "{key}" is the value of a parameter
 * @property {string[][]} costs rows "what", "how much"
 * @property {ParamField[]} [params] what a person may choose
 */

/**
 * One parameter in the dialog. What may be left empty is `optional`: empty means none. Of a choice,
 * `means` is the value that is sent where it is not the text of the option.
 * @typedef {object} ParamField
 * @property {string} key as the protocol has it
 * @property {string} label
 * @property {"number" | "choice" | "flag" | "text" | "numbers"} kind
 * @property {number | string | boolean} value chosen at first
 * @property {string} [unit]
 * @property {number} [min]
 * @property {number} [max]
 * @property {boolean} [decimal] a number that need not be whole
 * @property {number} [most] longest text in characters, or most numbers
 * @property {boolean} [optional]
 * @property {{value: string, text: string, means?: any}[]} [options]
 * @property {string} [note] what it costs or means
 */

/** @type {{title: string, entries: CommandEntry[]}[]} */
export const GROUPS = [
  { title: "Memory", entries: MEMORY_COMMANDS },
  { title: "Record", entries: RECORD_COMMANDS },
  { title: "Ask and watch", entries: LOOK_COMMANDS },
  { title: "Training", entries: TRAINING_COMMANDS },
  { title: "Settings", entries: SETTING_COMMANDS },
];

/** @type {CommandEntry[]} */
export const CATALOGUE = GROUPS.flatMap((group) => group.entries);

/** @param {string} name */
export function commandEntry(name) {
  return CATALOGUE.find((entry) => entry.name === name);
}

/** @param {string} name */
export function commandTitle(name) {
  return commandEntry(name)?.title ?? name.replace(/^user\./, "");
}

/**
 * Whether it is off as long as one rank of the run is missing. What lets training go on reaches whoever is there.
 * @param {CommandEntry | undefined} entry
 */
export function needsAllRanks(entry) {
  return (entry?.wholeRun ?? false) && (entry?.changesTraining ?? false);
}
