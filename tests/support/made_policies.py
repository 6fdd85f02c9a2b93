"""Policies for the tests: bodies as they come over the API, and what is read from them."""

from __future__ import annotations

from typing import Any

from vramscope_analysis.diagnosis.finding import Finding, Severity, Stage
from vramscope_server.findings.record import FindingRecord, opened
from vramscope_server.policies.definition import Definition, read_definition
from vramscope_server.policies.record import Firing, PolicyRecord

GIB = 1 << 30
RESERVED = "reserved_bytes.all.current"
WHEN: dict[str, Any] = {"series": RESERVED, "op": ">", "value": 6 * GIB}


def policy_body(**changes: Any) -> dict[str, Any]:
    """A policy that empties the cache when much is reserved; ``hold`` stands for "for"."""
    body: dict[str, Any] = {
        "name": "tidy up",
        "when": WHEN,
        "then": {"command": "empty_cache"},
        "every_s": 60,
    }
    if "hold" in changes:
        changes["for"] = changes.pop("hold")
    return body | changes


def definition(**changes: Any) -> Definition:
    """The same, read."""
    return read_definition(policy_body(**changes))[0]


def policy_record(policy_id: str = "p1", **changes: Any) -> PolicyRecord:
    """The same, made at time 1 and on."""
    return PolicyRecord(policy_id, definition(**changes), True, 1, "me", 1, "me")


def firing(number: int = 0, **changes: Any) -> Firing:
    """A command of a policy that is on its way."""
    values: dict[str, Any] = {
        "policy_id": "p1",
        "run_id": "r1",
        "run_name": "train",
        "time_ns": number,
        "mode": "act",
        "ranks": [0],
        "why": "it was so",
        "command": "empty_cache",
        "params": {},
        "command_id": f"c{number}",
        "state": "waiting",
    }
    return Firing(**(values | changes))


def finding_record(
    kind: str = "fragmentation",
    severity: Severity = "warning",
    stage: Stage = "confirmed",
    ranks: tuple[int, ...] = (0,),
) -> FindingRecord:
    """A finding that holds."""
    finding = Finding(kind, severity, "It is so.", ranks=ranks, stage=stage)
    return opened("r1", finding, ranks[0] if len(ranks) == 1 else None, 1)
