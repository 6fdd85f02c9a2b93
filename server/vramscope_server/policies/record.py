"""A policy as it is kept, and one time that it acted, or would have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from vramscope_server.policies.definition import Definition, Mode
from vramscope_server.policies.wording import says

FiringState = Literal["waiting", "done", "failed", "refused", "expired", "logged"]
"""``logged``: what it would have done, where there is no dry run of it."""


@dataclass
class PolicyRecord:
    """A policy and what became of it."""

    id: str
    definition: Definition
    is_on: bool
    created_ns: int
    created_by: str
    changed_ns: int
    changed_by: str
    off_reason: str = ""
    """Why the server has switched it off; empty: it has not."""
    failures: int = 0
    """Commands in a row that were not done."""
    fired: int = 0
    last_fired_ns: dict[str, int] = field(default_factory=dict[str, int])
    """By run."""

    def is_same_as(self, other: PolicyRecord) -> bool:
        """Whether both are one policy that nobody has changed or switched between them."""
        mine = (self.id, self.definition, self.is_on, self.off_reason, self.changed_ns)
        return mine == (
            other.id, other.definition, other.is_on, other.off_reason, other.changed_ns
        )  # fmt: skip

    def as_dict(self, watching: list[dict[str, Any]]) -> dict[str, Any]:
        """As the API has it."""
        return {
            "id": self.id,
            **self.definition.as_dict(),
            "is_on": self.is_on,
            "off_reason": self.off_reason,
            "failures_in_a_row": self.failures,
            "says": says(self.definition),
            "created_ns": self.created_ns,
            "created_by": self.created_by,
            "changed_ns": self.changed_ns,
            "changed_by": self.changed_by,
            "fired": self.fired,
            "last_fired_ns": max(self.last_fired_ns.values(), default=None),
            "watching": watching,
        }


@dataclass
class Firing:
    """One time that a policy acted, or would have. ``number`` is given by the store."""

    policy_id: str
    run_id: str
    run_name: str
    time_ns: int
    mode: Mode
    ranks: list[int]
    why: str
    command: str
    params: dict[str, Any]
    command_id: str | None
    state: FiringState
    result: str = ""
    number: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As the API has it."""
        return {
            "id": self.number,
            "policy": self.policy_id,
            "run": self.run_id,
            "run_name": self.run_name,
            "time_ns": self.time_ns,
            "mode": self.mode,
            "ranks": self.ranks,
            "why": self.why,
            "command": self.command,
            "params": self.params,
            "command_id": self.command_id,
            "state": self.state,
            "result": self.result,
        }
