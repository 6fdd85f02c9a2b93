// The words of a report of running out of memory. Pure.

import { findingGlyph } from "../findings.js";
import { clockWithUtc, count, known, sizeText } from "../format.js";
import { capital, placeText } from "../findings/card-words.js";
import { remedyLines } from "../findings/markdown.js";
import { askedText, whereItWent } from "./where-it-went.js";

/** @typedef {import("./messages.js").OomRow} OomRow */
/** @typedef {import("./messages.js").OomAnswer} OomAnswer */

/** @param {OomRow} row */
export function isAsked(row) {
  return row.source === "asked" || Boolean(row.linked_to);
}

/**
 * What came of it.
 * @param {OomRow} row
 */
export function outcomeText(row) {
  if (isAsked(row)) return "did not run out; asked because another rank did";
  if (row.is_fatal) return "ended the job";
  if (known(row.recovered_step)) return `recovered: step ${count(row.recovered_step)} ended after it`;
  return "not known what came of it";
}

/**
 * The sentence of the page.
 * @param {OomAnswer} answer
 * @param {number} world_size
 * @returns {import("../verdict.js").Verdict}
 */
export function oomVerdict(answer, world_size) {
  const { finding, report } = answer;
  const at = known(answer.step) ? ` at step ${count(answer.step)}` : "";
  const rank = world_size > 1 ? `Rank ${answer.rank}` : "";
  if (isAsked(answer)) {
    return { severity: "info", key: `asked-${answer.id}`, sentence: `Rank ${answer.rank} did not run out of memory: this is how it stood when another rank did.`, second: known(answer.device_free_bytes ?? report.device_free_bytes) ? `${sizeText(answer.device_free_bytes ?? report.device_free_bytes)} were free on its device.` : "" };
  }
  const severity = finding ? findingGlyph(finding) : "crit";
  const asked = answer.request_bytes ?? answer.segment_bytes;
  const sentence = finding?.summary ?? `Out of memory${at}: ${known(asked) ? `asked for ${sizeText(asked)}` : "how much was asked for is not known"}${known(report.device_free_bytes) ? `; ${sizeText(report.device_free_bytes)} were left on the device` : ""}.`;
  const where = capital([rank, finding?.detail ? "" : partText(answer)].filter(Boolean).join(", "));
  return { severity, key: `oom-${answer.id}`, sentence, second: [where && `${where}.`, finding?.detail ?? ""].filter(Boolean).join(" ") || capital(`${outcomeText(answer)}.`) };
}

/** @param {OomRow} row */
function partText({ part, phase }) {
  const where = part ? `in the ${part}` : "";
  return phase && phase !== "train" ? `${where || "in"}${where ? " of " : " "}${phase}` : where;
}

/**
 * Live memory by the line of the program; stacks that differ below it are one.
 * @param {import("./messages.js").HeldByStack[]} rows
 */
export function byLine(rows) {
  /** @type {Map<string, import("./messages.js").HeldByStack>} */
  const lines = new Map();
  for (const row of rows) {
    const key = `${row.file}:${row.line}:${row.function ?? ""}`;
    const had = lines.get(key);
    lines.set(key, had ? { ...had, bytes: had.bytes + row.bytes, count: had.count + row.count } : row);
  }
  return [...lines.values()].sort((a, b) => b.bytes - a.bytes);
}

/**
 * The whole report as Markdown, for an issue or a chat.
 * @param {OomAnswer} answer
 * @param {{run: string, world_size: number, address: string}} seen
 */
export function oomMarkdown(answer, { run, world_size, address }) {
  const { report, finding } = answer;
  const verdict = oomVerdict(answer, world_size);
  const account = whereItWent(report);
  const raised = report.threads?.find((thread) => thread.raised);
  const lines = [
    `### ${verdict.sentence}`, "", verdict.second, "",
    `Run \`${run}\`, rank ${answer.rank}, ${clockWithUtc(answer.time_ns)}: ${outcomeText(answer)}.${report.emulated ? " On an emulated device." : ""}`,
  ];
  if (account) {
    lines.push("", `| of ${sizeText(account.limit_bytes)} | |`, "|---|---:|", ...account.parts.map((part) => `| ${part.name} | ${sizeText(part.bytes)} |`), `| asked for | ${askedText(account)} |`);
  }
  lines.push(...remedyLines(finding?.remedies ?? [], "What would have helped"));
  if (report.by_stack?.length) lines.push("", "**Who held it**", "", ...byLine(report.by_stack).slice(0, 10).map((row) => `- ${sizeText(row.bytes)} in ${count(row.count)} blocks: \`${placeText(row) || "no Python stack"}\` ${row.function ?? ""}`));
  if (raised) lines.push("", "**Who asked**", "", "```", ...raised.frames.slice(0, 12).map((frame) => `${frame.file}:${frame.line} ${frame.function ?? ""}`), "```");
  if (report.message) lines.push("", "```", report.message, "```");
  return `${[...lines, "", address].join("\n")}\n`;
}
