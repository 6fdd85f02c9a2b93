// Commands that the job itself declares, as entries of the catalogue. Pure.

import { plural, ranksText } from "../format.js";

/** @typedef {import("../messages.js").Rank} Rank */
/** @typedef {import("../messages.js").UserCommand} UserCommand */
/** @typedef {import("../messages.js").UserParam} UserParam */
/** @typedef {import("./catalogue.js").CommandEntry} CommandEntry */
/** @typedef {import("./catalogue.js").ParamField} ParamField */
/** @typedef {{entry: CommandEntry, ranks: number[], differs: string | null}} OwnCommand `differs`: on which ranks it is another one, or none */

const PREFIX = "user.";

/**
 * One for each name. Where ranks declare it differently, the form is that of the first rank, and it is said.
 * @param {Rank[]} ranks that are live
 * @param {number} world_size
 * @returns {OwnCommand[]}
 */
export function ownCommands(ranks, world_size) {
  /** @type {Map<string, {command: UserCommand, ranks: number[], others: number[]}>} */
  const found = new Map();
  for (const rank of ranks) {
    for (const command of rank.user_commands ?? []) {
      const first = found.get(command.name);
      if (!first) found.set(command.name, { command, ranks: [rank.rank], others: [] });
      else (sameForm(first.command, command) ? first.ranks : first.others).push(rank.rank);
    }
  }
  return [...found.values()].map(({ command, ranks: same, others }) => ({ entry: entryOf(command), ranks: same, differs: differsText(ranks, same, others, world_size) }));
}

/**
 * @param {Rank[]} ranks
 * @param {number[]} same
 * @param {number[]} others
 * @param {number} world_size
 */
function differsText(ranks, same, others, world_size) {
  const missing = ranks.map((rank) => rank.rank).filter((rank) => !same.includes(rank) && !others.includes(rank));
  const parts = [];
  if (missing.length) parts.push(`not declared on ${ranksText(missing, world_size)}`);
  if (others.length) parts.push(`declared differently on ${ranksText(others, world_size)}`);
  return parts.length ? `The ranks differ: ${parts.join(", ")}. The form is that of rank ${same[0]}.` : null;
}

/**
 * @param {UserCommand} a
 * @param {UserCommand} b
 */
function sameForm(a, b) {
  return JSON.stringify(declared(a)) === JSON.stringify(declared(b));
}

/** @param {UserCommand} command */
function declared(command) {
  return [command.right, command.place, command.same_step ?? false, command.changes_training ?? false, command.params ?? []];
}

/**
 * @param {UserCommand} command
 * @returns {CommandEntry}
 */
export function entryOf(command) {
  const title = command.name.startsWith(PREFIX) ? command.name.slice(PREFIX.length) : command.name;
  const params = command.params ?? [];
  return {
    name: command.name,
    title,
    menu: `${title}…`,
    summary: command.summary || `Declared by the job, with ${plural(params.length, "value")}; it says nothing else of it.`,
    needsControl: (command.right ?? "control") === "control",
    dryRun: false,
    place: command.place ?? "step boundary",
    sameStep: command.same_step ?? false,
    changesTraining: command.changes_training ?? false,
    consent: "The job says so of its own command; how, only its code knows.",
    isOwn: true,
    verb: `Run ${title}`,
    costs: [["What it does", "is up to the job: it is its own code"]],
    params: params.map(fieldOf),
  };
}

/**
 * @param {UserParam} param
 * @returns {ParamField}
 */
export function fieldOf(param) {
  const given = param.default ?? null;
  const field = { key: param.name, label: param.name };
  switch (param.kind) {
    case "bool":
      // A box has no third state: without a default the person chooses one of two.
      return given === null ? { ...field, kind: "choice", value: "", options: [{ value: "", text: "choose", means: undefined }, { value: "yes", text: "yes", means: true }, { value: "no", text: "no", means: false }] } : { ...field, kind: "flag", value: given === true };
    case "choice":
      return { ...field, kind: "choice", value: given === null ? (param.choices?.[0] ?? "") : String(given), options: (param.choices ?? []).map((text) => ({ value: text, text })) };
    case "str":
      return { ...field, kind: "text", value: given === null ? "" : String(given), most: 1000, optional: given !== null };
    default:
      return { ...field, kind: "number", decimal: param.kind === "float", value: given === null ? "" : Number(given), min: param.least ?? undefined, max: param.most ?? undefined, note: boundsNote(param) };
  }
}

/** @param {UserParam} param */
function boundsNote({ least, most, kind }) {
  const what = kind === "int" ? "A whole number" : "A number";
  const text = (/** @type {number} */ value) => value.toLocaleString("en-US", { maximumFractionDigits: 12 });
  if (typeof least === "number" && typeof most === "number") return `${what}, ${text(least)} to ${text(most)}.`;
  if (typeof least === "number") return `${what}, at least ${text(least)}.`;
  if (typeof most === "number") return `${what}, at most ${text(most)}.`;
  return `${what}.`;
}
