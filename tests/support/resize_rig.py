"""A tracker of steps and a queue of commands, for jobs whose batch size is changed on the way."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.support.step_rig import Rig
from vramscope.batching.resize import resize_handlers
from vramscope.commands.handlers import CommandHandlers
from vramscope.commands.queue import CommandQueue
from vramscope_protocol.messages import Command, CommandUpdate

_numbers = count()


class ResizeRig(Rig):
    """Runs commands at the ends of the steps that a test names."""

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[CommandUpdate] = []
        self._at: dict[int, list[Command]] = {}
        self._closers: list[Any] = []
        handlers = resize_handlers(self.device, lambda: self.tracker, self._closers)
        self.queue = CommandQueue(
            CommandHandlers(self.device, handlers), clock=self.clock, emit=self.updates.append
        )
        self.tracker._run_commands = self._at_boundary
        self.tracker.install()

    def at(self, step: int, name: str = "set_batch_size", **params: Any) -> None:
        """Have a command run at the end of a step; ``dry_run`` as a parameter makes it one."""
        dry_run = bool(params.pop("dry_run", False))
        identity = f"{name}-{next(_numbers)}"  # the same on each rank
        command = Command(identity, name, params=params, dry_run=dry_run, deadline_s=600)
        self._at.setdefault(step, []).append(command)

    def close(self) -> None:
        """The agent goes."""
        self.queue.close("the test is over")
        for close in self._closers:
            close()
        self.tracker.remove()

    @property
    def receipts(self) -> list[Any]:
        """Last words, in the order of their commands."""
        return [update.receipt for update in self.updates if update.is_last_word]

    def _at_boundary(self, step: int) -> None:
        for command in self._at.pop(step, []):
            self.queue.submit(command)
        self.queue.run_at_boundary(step)
