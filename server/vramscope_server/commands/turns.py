"""The order of same-step commands: in each run one at a time, until all its ranks have begun."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from vramscope_protocol.commands import FINAL_STATES
from vramscope_server.commands.record import CommandRecord


@dataclass(eq=False)
class Turn:
    """One command in line."""

    record: CommandRecord
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Something was heard that it may wait for."""
    obstacle: str = ""
    """What stands against it for good, in a whole sentence."""


class Turns:
    """Same-step commands from their acceptance on, oldest first.

    Two that are under way at once could reach one rank in one order and another rank in the other.
    """

    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}

    def __iter__(self) -> Iterator[Turn]:
        return iter(tuple(self._turns.values()))

    def add(self, record: CommandRecord) -> Turn:
        """Get in line."""
        turn = self._turns[record.id] = Turn(record)
        return turn

    def before(self, turn: Turn) -> CommandRecord | None:
        """A command that is to be waited for."""
        for other in self._turns.values():
            if other is turn:
                return None
            if other.record.run_id == turn.record.run_id:
                return other.record
        return None

    def object(self, record: CommandRecord, reason: str) -> None:
        """Something stands against a command for good; the first that does counts."""
        turn = self._turns.get(record.id)
        if turn is not None:
            turn.obstacle = turn.obstacle or reason
            turn.wake.set()

    def wake(self, record: CommandRecord) -> None:
        """Have a command look again."""
        turn = self._turns.get(record.id)
        if turn is not None:
            turn.wake.set()

    def settled(self, record: CommandRecord) -> None:
        """Something of a command has changed: if its turn is over, the next may begin."""
        if not is_under_way(record):
            self.leave(record)

    def leave(self, record: CommandRecord) -> None:
        """Let the next begin."""
        if self._turns.pop(record.id, None) is None:
            return
        for turn in self._turns.values():
            if turn.record.run_id == record.run_id:
                turn.wake.set()


def is_under_way(record: CommandRecord) -> bool:
    """Whether some rank may still wait for the decision, or for the step."""
    agreement = record.agreement
    if agreement is None or agreement.run is False:
        return False
    return agreement.run is None or any(
        rank not in record.answers or record.answers[rank].state not in FINAL_STATES | {"running"}
        for rank in record.ranks
    )
