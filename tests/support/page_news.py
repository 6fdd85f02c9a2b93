"""What the live feed of the stand-in server tells a subscription."""

from __future__ import annotations

import time
from typing import Any

from tests.support.page_findings import top_finding
from tests.support.page_rows import to_json
from tests.support.page_scenario import Scenario


def run_of(scenario: Scenario, *, with_ranks: bool) -> dict[str, Any]:
    """The run object with what was found."""
    holds = [one for one in scenario.findings if one["state"] == "open" and not one["muted"]]
    return {
        **scenario.run(with_ranks=with_ranks),
        "finding": top_finding(scenario.findings),
        "findings_open": {
            severity: sum(one["severity"] == severity for one in holds)
            for severity in ("critical", "warning", "info")
        },
    }


def news_of(scenarios: list[Scenario], subscription: dict[str, Any]) -> list[dict[str, Any]]:
    """Events since the last call, for a subscription that remembers what it was sent."""
    sent = subscription["sent"]
    now = time.monotonic()
    if subscription["type"] == "subscribe_runs":
        if now - sent.get("runs", 0.0) < 1:
            return []
        sent["runs"] = now
        return [{"kind": "runs", "runs": [run_of(one, with_ranks=False) for one in scenarios]}]
    scenario = next(one for one in scenarios if subscription["run"] in (one.id, one.name))
    news: list[dict[str, Any]] = []
    if now - sent.get("run", 0.0) > 0.5:
        sent["run"] = now
        news.append({"kind": "run", "run": run_of(scenario, with_ranks=True)})
    for command in scenario.commands.values():
        states = str([command["state"], [one["state"] for one in command["receipts"].values()]])
        if sent.get(command["id"]) != states:
            sent[command["id"]] = states
            news.append({"kind": "command", "command": command})
    for one in scenario.findings:
        state = (one["summary"], one["resolved_ns"], str(one["muted"]))
        if sent.get(one["id"]) != state:
            sent[one["id"]] = state
            news.append({"kind": "finding", "finding": one})
    until_ns = scenario.end_ns
    since_ns = subscription["since_ns"]
    if until_ns <= since_ns:
        return news
    ranks = subscription["ranks"]
    for rank in range(scenario.world_size) if ranks is None else ranks:
        wanted = subscription["fields"]
        batch = scenario.samples(since_ns, until_ns, rank)
        if len(batch["time_ns"]):
            news.append(
                {
                    "kind": "samples",
                    "rank": rank,
                    "time_ns": batch["time_ns"].tolist(),
                    "columns": {
                        name: to_json(batch["columns"][name])
                        for name in [*wanted, "step"]
                        if name in batch["columns"]
                    },
                }
            )
        rows = scenario.step_rows(
            scenario.last_step(since_ns) + 1, scenario.last_step(until_ns), rank
        )
        offsets, of_rows = rows.pop("step_offsets"), rows.pop("life")
        if rows["step"]:
            news.append(
                {
                    "kind": "steps",
                    "rank": rank,
                    "life": of_rows[-1],
                    "step_offset": offsets[of_rows[-1]],
                    **rows,
                    "columns": {
                        name: rows["columns"][name] for name in wanted if name in rows["columns"]
                    },
                }
            )
    subscription["since_ns"] = until_ns
    return news
