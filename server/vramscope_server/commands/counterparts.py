"""What commands need of the rest of the server."""

from __future__ import annotations

from typing import Any, Protocol

from vramscope_protocol.messages import Command, Decision
from vramscope_server.registry.step_pace import RankPace


class RunDirectory(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...

    def find(self, run: str) -> str | None:
        """Id of a run, given its id or its name."""
        ...

    def paces(self, run_id: str) -> dict[int, RankPace]:
        """How far each rank is, of those that have told it."""
        ...


class CommandCarrier(Protocol):
    """The way to connected ranks."""

    def send_command(self, run_id: str, rank: int, command: Command) -> bool:
        """Queue the command on the rank's connection; False if there is none."""
        ...

    def send_decision(self, run_id: str, rank: int, decision: Decision) -> bool:
        """Queue the decision behind the command that it is about; False if it cannot be."""
        ...

    def can_prepare(self, run_id: str, rank: int) -> bool | None:
        """Whether a rank prepares commands for a step; None if it is not connected."""
        ...

    def life(self, run_id: str, rank: int) -> str | None:
        """The stream of the rank's process; None if it is not connected."""
        ...


class CommandAudience(Protocol):
    """Who is told how a command is doing."""

    def publish_command(self, run_id: str, command: dict[str, Any]) -> None:
        """Hand the present state of a command on."""
        ...

    def publish_event(self, run_id: str, event: dict[str, Any]) -> None:
        """Hand an event on."""
        ...
