// The agents' own account: rate, cost in all and by part, GIL, what waits, what went wrong.

import { costByPart, gilPerTurn_us, partNames, rateText } from "../account.js";
import { el, fillWhenChanged } from "../dom.js";
import { count, known, sizeText } from "../format.js";
import { dataTable, panel } from "./parts.js";

/** @typedef {import("../messages.js").Rank} Rank */
/** @typedef {import("../messages.js").AgentStatus} AgentStatus */

export class AccountPanel {
  constructor() {
    this.body = el("div", { class: "body rank-list" });
    this.element = panel("Cost of watching", [el("span", { class: "context" }, "measured by the agent itself, about once a second")], this.body);
  }

  /** @param {Rank[]} ranks */
  update(ranks) {
    const key = JSON.stringify(ranks.map((rank) => [rank.rank, rank.status, rank.samples_received, rank.steps_received]));
    fillWhenChanged(this.body, key, () => [
      dataTable(["Rank", ">Rate, Hz", ">CPU, % of a core", ">GIL per turn, µs", ">Sent", ">Waiting", ">On disk", ">Errors", ">Samples", ">Steps", "Notes"], ranks.map(accountRow), "Cost of watching by rank"),
      this.parts(ranks),
      el("p", { class: "ink3" }, "CPU by part is an average since attach, the loading of libraries included. GIL per turn is the time of one turn of the sampling thread without the calls that give the GIL away."),
    ]);
  }

  /** @param {Rank[]} ranks */
  parts(ranks) {
    const names = partNames(ranks.map((rank) => rank.status));
    if (names.length === 0) return null;
    const rows = ranks.map((rank) => {
      const shares = costByPart(rank.status);
      return [String(rank.rank), ...names.map((name) => (known(shares?.[name]) ? (shares[name] * 100).toFixed(3) : "–")), limitText(rank.status)];
    });
    return dataTable(["Rank", ...names.map((name) => `>${name}, %`), "Budget of the sampler"], rows, "CPU by part of the agent");
  }
}

/**
 * @param {Rank} rank
 * @returns {import("../dom.js").Child[]}
 */
function accountRow({ rank, status, samples_received, steps_received }) {
  const gil_us = gilPerTurn_us(status);
  const errors = status?.account?.errors ?? {};
  const account = status?.account;
  return [
    String(rank),
    rateText(status),
    status ? (status.cost_fraction * 100).toFixed(2) : "–",
    known(gil_us) ? count(gil_us) : "–",
    account ? sizeText(account.sent_bytes ?? 0) : "–",
    status ? `${sizeText(status.outbox_bytes ?? 0)}${account ? ` in ${count(account.queued_messages ?? 0)}` : ""}` : "–",
    status ? sizeText(status.spool_bytes ?? 0) : "–",
    el("span", { title: Object.entries(errors).map(([place, times]) => `${place}: ${times}`).join("\n") || null }, status ? count(status.guard_errors ?? 0) : "–"),
    count(samples_received),
    count(steps_received),
    (status?.notes ?? []).join("; ") || "none",
  ];
}

/** @param {AgentStatus | null} status */
function limitText(status) {
  const share = status?.account?.budget_fraction;
  if (!status?.account) return "–";
  return known(share) && share > 0 ? `${(share * 100).toFixed(2)} % of a core` : "none";
}
