// A finding as Markdown, for an issue or a chat. Pure.

import { capital, chainText, factsText, placeText, remedyText, sizeLine, sourceOf, whereText } from "./card-words.js";
import { findingTime, findingTitle } from "../findings.js";
import { clockWithUtc, known } from "../format.js";

/** @typedef {import("./messages.js").Finding} Finding */

/**
 * @param {Finding} finding
 * @param {{run: string, world_size: number, address: string, now_ns: number, emulated: boolean}} seen
 */
export function findingMarkdown(finding, { run, world_size, address, now_ns, emulated }) {
  const where = whereText(finding, world_size);
  const lines = [
    `### ${finding.summary}`,
    "",
    `**${findingTitle(finding)}** (${finding.severity}) in run \`${run}\`${where ? `, ${where}` : ""}${emulated ? ", on an emulated device" : ""}. ${sizeLine(finding)}`.trimEnd(),
    "",
    `Found ${clockWithUtc(finding.opened_ns)}, ${findingTime(finding, now_ns)}.${known(finding.since_step) ? ` It began at step ${finding.since_step}.` : ""}`,
    ...culpritLines(finding),
    ...(finding.detail ? ["", finding.detail] : []),
    ...paragraph("Why we are sure", factsText(finding)),
    ...remedyLines(finding.remedies, "What would help"),
    "",
    address,
  ];
  return `${lines.join("\n")}\n`;
}

/** @param {Finding} finding */
function culpritLines(finding) {
  const source = sourceOf(finding);
  const code = source ? ["", "```python", ...source.lines.map((line, i) => `${source.first_line + i === source.line ? ">" : " "} ${String(source.first_line + i).padStart(4)}  ${line}`), "```"] : [];
  const places = finding.culprits.filter((one) => one.file).map((one) => `- \`${placeText(one)}\`${one.function && one.function !== "<module>" ? ` in \`${one.function}\`` : ""}${chainText(one) ? `, held by ${chainText(one)}` : ""}${one.tensors?.length ? ` (${one.tensors.slice(0, 3).join(", ")})` : ""}`);
  return [...code, ...(places.length ? ["", ...places] : [])];
}

/**
 * @param {string} title
 * @param {string} text
 */
function paragraph(title, text) {
  return text ? ["", `**${title}.** ${text}`] : [];
}

/**
 * What helps, one after the other, each with its code; nothing where nothing does.
 * @param {Finding["remedies"]} remedies
 * @param {string} title
 */
export function remedyLines(remedies, title) {
  if (remedies.length === 0) return [];
  return ["", `**${title}**`, "", ...remedies.flatMap((remedy, i) => [`${i + 1}. ${capital(remedy.action)}. ${remedyText(remedy)}`.trimEnd(), ...(remedy.fix ? ["", ...remedy.fix.split("\n").map((line) => `       ${line}`), ""] : [])])];
}
