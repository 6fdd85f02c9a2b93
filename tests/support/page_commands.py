"""Commands to a generated run: how they are kept and what their receipts say."""

from __future__ import annotations

import time
import uuid
from typing import Any

from tests.support.page_scenario import GIB, Scenario


def new_command(scenario: Scenario, body: dict[str, Any]) -> dict[str, Any]:
    """A queued command of the API from the body of its request."""
    ranks = list(range(scenario.world_size)) if body["ranks"] == "all" else body["ranks"]
    now_ns = time.time_ns()
    return {
        "id": uuid.uuid4().hex,
        "name": body["name"],
        "params": body["params"],
        "dry_run": body["dry_run"],
        "ranks": ranks,
        "state": "queued",
        "issued_by": "ada@host",
        "origin": "browser",
        "created_ns": now_ns,
        "deadline_ns": now_ns + int(body["deadline_s"] * 1e9),
        "finished_ns": None,
        "receipts": {},
    }


def advance(command: dict[str, Any], state: str, ranks: list[int], message: str = "") -> None:
    """Let some ranks come as far as ``state``, and the command with the farthest of them."""
    for rank in ranks:
        command["receipts"][str(rank)] = {
            "state": state,
            "step": None,
            "before": {},
            "after": {},
            "returned_bytes": None,
            "took_s": None,
            "message": message,
            "result": None,
            "time_ns": time.time_ns(),
        }
    command["state"] = state


def finish(scenario: Scenario, command: dict[str, Any], outcome: str) -> None:
    """Answer a command on every rank: with what it freed, or with why it did not."""
    step = scenario.last_step()
    if command["name"].startswith("set_"):
        finish_setting(command, outcome, step)
        return
    for rank in command["ranks"]:
        row = scenario.step_rows(step, step, rank)["columns"]
        names = ("reserved_bytes", "allocated_bytes", "active_bytes", "inactive_split_bytes")
        before = {name: row[f"{name}.all.current"][0] for name in names}
        cached = before["reserved_bytes"] - before["active_bytes"]
        cached -= before["inactive_split_bytes"]
        if (used := row["device.used_bytes"][0]) is not None:
            before["device_free_bytes"] = int(scenario.limit_gib * GIB) - used
        frees = command["name"].startswith("empty_cache") and outcome == "done"
        after = dict(before)
        if frees and not command["dry_run"]:
            after["reserved_bytes"] -= cached
            if "device_free_bytes" in after:
                after["device_free_bytes"] += cached
        message = {
            "done": "",
            "expired": "no optimizer step within 30 s. Nothing was changed.",
            "refused": "a stream is capturing. Nothing was changed.",
        }[outcome]
        answer = (
            "|===  PyTorch CUDA memory summary  ===|"
            if command["name"] == "memory_summary"
            else {"num_ooms": 0, "reserved_bytes.all.current": before["reserved_bytes"]}
            if command["name"] == "stats"
            else None
        )
        command["receipts"][str(rank)] = {
            "state": outcome,
            "step": step,
            "before": before,
            "after": after,
            "returned_bytes": cached if frees else None,
            "took_s": 0.018,
            "message": message,
            "result": answer,
            "time_ns": time.time_ns(),
        }
    command["state"] = outcome
    command["finished_ns"] = time.time_ns()
    if command["name"].startswith("empty_cache") and not command["dry_run"] and outcome == "done":
        scenario.freed_steps.append(step)


def finish_setting(command: dict[str, Any], outcome: str, step: int) -> None:
    """Answer a command that changes a value, with the value before and after."""
    params = {name: value for name, value in command["params"].items() if value is not None}
    before = {name: 1 if isinstance(value, (int, float)) else "" for name, value in params.items()}
    would = "Would change" if command["dry_run"] else "Changed"
    messages = {
        "done": f"{would} {', '.join(params)}.",
        "expired": "no optimizer step within 30 s. Nothing was changed.",
        "refused": "a stream is capturing. Nothing was changed.",
        "failed": "Rolled back: the first step ran out of memory; the old size is back.",
    }
    advance(command, outcome, command["ranks"], messages[outcome])
    for receipt in command["receipts"].values():
        receipt |= {"step": step, "before": before, "after": params, "took_s": 0.002}
    command["finished_ns"] = time.time_ns()
