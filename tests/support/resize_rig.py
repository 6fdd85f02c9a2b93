"""A tracker of steps and a queue of commands, for jobs whose batch size is changed on the way."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.support.step_rig import Rig, sgd
from vramscope.batching.declared_batch_size import BatchSize, declare
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


class ResizableJob:
    """Trains one weight; a loop that reads its accumulation, and may run out of memory."""

    def __init__(self, rig: ResizeRig, samples: int = 48, workers: int = 0) -> None:
        import torch

        data: Any = torch.arange(samples)
        self.loader: Any = torch.utils.data.DataLoader(data, batch_size=8, num_workers=workers)
        self.sizes = BatchSize(self.loader, 1)
        declare(self.sizes)
        self.seen: list[int] = []
        self.too_large = 1 << 30
        self._rig = rig
        self._optimizer = sgd()
        (self._weight,) = self._optimizer.param_groups[0]["params"]

    def epoch(self) -> list[int]:
        """Sizes of its batches; one that is too large is left out, as a careful loop does."""
        sizes: list[int] = []
        for number, batch in enumerate(self.loader, 1):
            sizes.append(len(batch))
            if len(batch) > self.too_large:
                self._run_out()
                continue
            (self._weight.sum() * batch.float().sum()).backward()
            self.seen += batch.tolist()
            if number % self.sizes.accumulation == 0:
                self._optimizer.step()
        return sizes

    def _run_out(self) -> None:
        stats: Any = self._rig.device.stats
        self._rig.device.stats = {**stats, "num_ooms": stats["num_ooms"] + 1}
        # The sampler looks in meanwhile.
        self._rig.queue.run_on_agent_thread(self._rig.tracker.step)
