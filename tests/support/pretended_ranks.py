"""Ranks that do what agents promise, for tests in which anything may happen at any time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import Command, CommandUpdate, Decision

JobStore = dict[tuple[str, int], str]
"""What the ranks of one job have written for one another: the first word for a step stands."""


@dataclass
class PretendedRank:
    """One rank: it hears, speaks and goes on only when the test lets it."""

    number: int
    job: JobStore
    deliver: Callable[[int, CommandUpdate], None]
    """Hands the server what it says."""
    step: int = 100
    life: int = 0
    connected: bool = True
    inbox: deque[Command | Decision] = field(default_factory=deque[Any])
    outbox: deque[CommandUpdate] = field(default_factory=deque[CommandUpdate])
    prepared: dict[str, int] = field(default_factory=dict[str, int])
    ran: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """What it has run, over all its lives, and at which step."""
    got_ready: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    last: dict[str, CommandUpdate] = field(default_factory=dict[str, CommandUpdate])

    def hear(self) -> None:
        """Take the next message, if one has come."""
        if not self.inbox:
            return
        message = self.inbox.popleft()
        if isinstance(message, Command):
            self._take_command(message)
        elif message.id in self.prepared and message.at_step >= self.prepared[message.id]:
            self._take_decision(message)

    def speak(self) -> None:
        """Deliver what waits, if there is a connection."""
        while self.connected and self.outbox:
            self.deliver(self.number, self.outbox.popleft())

    def go_on(self, steps: int) -> None:
        """Train, up to a step at which it has to stand still."""
        target = min((self.step + steps, *self.prepared.values()))
        self.step = max(self.step, target)
        for command_id, at_step in tuple(self.prepared.items()):
            word = self.job.get((command_id, at_step))
            if self.step == at_step and word is not None:
                self._act(command_id, word)

    def lose_patience(self) -> None:
        """Stand still at a step for too long."""
        for command_id, at_step in tuple(self.prepared.items()):
            if self.step == at_step:
                self._act(command_id, self.job.setdefault((command_id, at_step), "drop"))

    def start_again(self) -> None:
        """Die, and come back as another process that trains from its checkpoint."""
        self.life += 1
        self.inbox.clear()
        self.prepared.clear()
        self.last.clear()

    def _take_command(self, command: Command) -> None:
        assert command.at_step is not None
        last = self.last.get(command.id)
        if last is not None and last.at_step in (None, command.at_step):
            self._say(last)
            return
        at_step = command.at_step
        if self.step >= at_step:
            receipt = Receipt("refused", step=self.step, message=f"step {at_step} is over")
            self.prepared.pop(command.id, None)
            self._say(CommandUpdate(0, command.id, "refused", 0, receipt, at_step=at_step))
            return
        self.prepared[command.id] = at_step
        self.got_ready.add((command.id, at_step))
        self._say(CommandUpdate(0, command.id, "prepared", 0, at_step=at_step))

    def _take_decision(self, decision: Decision) -> None:
        at_step = self.prepared[decision.id]
        if decision.reason == "again":
            self.job.setdefault((decision.id, at_step), "drop")
            del self.prepared[decision.id]
            return
        word = self.job.setdefault((decision.id, at_step), "run" if decision.run else "drop")
        if word == "drop" or self.step == at_step:
            self._act(decision.id, word)

    def _act(self, command_id: str, word: str) -> None:
        at_step = self.prepared.pop(command_id)
        state: Any = "done" if word == "run" else "refused"
        if word == "run":
            self.ran.append((command_id, at_step))
        receipt = Receipt(state, step=self.step, message=word)
        self._say(CommandUpdate(0, command_id, state, time.time_ns(), receipt))

    def _say(self, update: CommandUpdate) -> None:
        self.last[update.id] = update
        self.outbox.append(update)
