"""What the ranks of one command have agreed on: a step, and whether to run. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vramscope_protocol.messages import Decision


@dataclass
class Agreement:
    """The present state of it. Once decided, it stays decided."""

    at_step: int | None = None
    """Step that the ranks were asked for last; none before they were."""
    run: bool | None = None
    """None: nothing is decided."""
    reason: str = ""
    """Why it is not run, in whole sentences."""
    decided_ns: int | None = None

    @property
    def decision(self) -> str | None:
        """The decision in one word."""
        return None if self.run is None else "run" if self.run else "drop"

    def message(self, command_id: str) -> Decision | None:
        """What the ranks are told; None while there is nothing to tell."""
        if self.run is None or self.at_step is None:
            return None
        return Decision(command_id, self.at_step, run=self.run, reason=self.reason)

    def as_dict(self) -> dict[str, Any]:
        """As the API shows it and the store keeps it."""
        return {
            "at_step": self.at_step,
            "decision": self.decision,
            "reason": self.reason,
            "decided_ns": self.decided_ns,
        }


def agreement_from_dict(stored: dict[str, Any]) -> Agreement:
    """Read it back from what the store gives."""
    decision = stored["decision"]
    return Agreement(
        at_step=stored["at_step"],
        run=None if decision is None else decision == "run",
        reason=stored["reason"],
        decided_ns=stored["decided_ns"],
    )
