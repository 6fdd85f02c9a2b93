// Findings as things that happened: marks under the chart, lines in the list of events. Pure.

import { findingTitle, isPast } from "../findings.js";

/** @typedef {import("./messages.js").Finding} Finding */

/**
 * When they were found, and when warnings were over; what is only worth knowing makes no mark.
 * @param {Finding[]} findings
 * @returns {import("../marks.js").Happening[]}
 */
export function findingHappenings(findings) {
  return findings.flatMap((finding) => {
    if (finding.severity === "info" || finding.muted || finding.kind === "oom") return [];
    const title = findingTitle(finding);
    const one = { rank: finding.rank, step: null };
    const found = { ...one, time_ns: finding.opened_ns, kind: `finding-${finding.severity}`, glyph: finding.severity === "critical" ? "⬢" : "▲", text: `${title}: ${finding.summary}` };
    return isPast(finding) ? [found, { ...one, time_ns: /** @type {number} */ (finding.resolved_ns), kind: "finding-over", glyph: "△", text: `Over: ${title}` }] : [found];
  });
}
