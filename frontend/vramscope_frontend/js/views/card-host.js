// What the cards of a run can do: commands, muting, addresses. One place for every page that shows them.

import { api } from "../api.js";
import { known } from "../format.js";
import { silence_s, STALE_AFTER_S } from "../run-state.js";
import { MuteDialog } from "./mute-dialog.js";

/** @typedef {import("../findings/messages.js").Finding} Finding */
/** @typedef {import("./run-page.js").RunPage} RunPage */

/**
 * What the top of the page says of the finding that makes its sentence.
 * @param {import("../verdict.js").Verdict | null} verdict
 */
function saidOf(verdict) {
  const second = verdict?.second ?? "";
  return [verdict?.sentence, second.includes("Also: ") ? "" : second].filter(Boolean).join("\n");
}

/**
 * @param {RunPage} page
 * @param {((finding: Finding) => void) | null} onEvidence
 * @returns {{does: import("./finding-card.js").CardDoes, seen: () => import("./finding-card.js").CardSeen}}
 */
export function cardsOf(page, onEvidence) {
  const rankOf = (/** @type {Finding} */ finding) => (finding.ranks.length === 1 && (page.session.run?.world_size ?? 1) > 1 ? `&rank=${finding.ranks[0]}` : "");
  return {
    does: {
      evidence: onEvidence,
      evidencePath: (finding) => `${page.pathOf("overview")}?finding=${finding.id}${rankOf(finding)}&y=moving#evidence`,
      path: (finding) => `${location.origin}${page.pathOf("findings")}?finding=${finding.id}`,
      run: (command, finding) => page.openCommand(command, finding.ranks.length === 1 ? finding.ranks[0] : undefined),
      mute: (finding) => {
        if (!document.querySelector("dialog[open]")) new MuteDialog(finding, (muted) => page.session.takeFinding(muted)).open();
      },
      unmute: (finding) => {
        api.unmuteFinding(finding.run, finding.id).then((open) => page.session.takeFinding(open), (error) => page.showTrouble("The finding is still muted", error));
      },
      oomPath: (finding) => (typeof finding.evidence.report === "string" && finding.evidence.report ? page.oomPath(finding.evidence.report) : null),
    },
    seen: () => {
      const { app, session } = page;
      const run = /** @type {import("../messages.js").Run} */ (session.run);
      const now_ns = app.clock.now_ns();
      const silent_s = silence_s(run, now_ns);
      const isStale = page.pill.state === "disconnected" || (run.state === "live" && known(silent_s) && silent_s > STALE_AFTER_S) || run.state === "lost";
      return {
        run: run.name,
        world_size: run.world_size,
        emulated: run.emulated,
        now_ns,
        said: onEvidence ? saidOf(page.verdict) : "",
        as_of_ns: isStale ? run.last_seen_ns : null,
        muteReason: app.link.state !== "open" ? "This page is not connected to its server." : app.scopes.includes("control") ? null : "You may look but not act: your token has no control right.",
        reasonOf: (command) => page.actions.reasonOf(command, run, app.link, app.scopes),
      };
    },
  };
}
