"""A queue of commands over a fake device, and a command that goes on until it is told to end."""

from __future__ import annotations

from typing import Any, Literal

from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.fake_store import FakeStore
from tests.support.recording_outbox import RecordingOutbox
from vramscope.commands.agreement import Agreement
from vramscope.commands.handlers import CommandHandlers
from vramscope.commands.queue import CommandQueue
from vramscope_protocol.commands import Receipt
from vramscope_protocol.messages import Command, Decision


class QueueRig:
    """A queue over a fake device."""

    def __init__(
        self,
        allow: Literal["observe", "control"] = "control",
        allow_commands: frozenset[str] | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.device = FakeDevice()
        self.outbox = RecordingOutbox()
        self.samples = 0
        self.step = 0
        self.coming: list[str] = []
        store = FakeStore()
        self.queue = CommandQueue(
            CommandHandlers(self.device),
            clock=self.clock,
            emit=self.outbox.put,
            allow=lambda: allow,
            allow_commands=allow_commands,
            on_change=self._sample,
            step=lambda: self.step,
            on_coming=self.coming.append,
            agreement=Agreement(lambda: store),
        )

    def _sample(self) -> None:
        self.samples += 1

    def submit(self, identity: str, name: str = "empty_cache", **more: Any) -> None:
        self.queue.submit(Command(id=identity, name=name, **more))

    def decide(self, identity: str, at_step: int, *, run: bool, reason: str = "") -> None:
        self.queue.decide(Decision(identity, at_step, run=run, reason=reason))

    def end_steps(self, count: int = 1) -> None:
        for _ in range(count):
            self.step += 1
            self.queue.run_at_boundary(self.step)

    def receipt(self, identity: str) -> Receipt:
        receipt = self.outbox.updates(identity)[-1].receipt
        assert receipt is not None
        return receipt


class GoingCommand:
    """A command that goes on until it is told to end."""

    progress = "on its way"

    def __init__(self) -> None:
        self.receipt: Receipt | None = None
        self.steps: list[int] = []
        self.cancelled = ""

    def poll(self, step: int) -> Receipt | None:
        self.steps.append(step)
        return self.receipt

    def poll_on_agent_thread(self) -> Receipt | None:
        return None

    def cancel(self, reason: str) -> Receipt:
        self.cancelled = reason
        return Receipt("failed", message=reason)


def going_rig() -> tuple[QueueRig, GoingCommand]:
    rig, going = QueueRig(), GoingCommand()
    rig.queue._handlers = CommandHandlers(rig.device, {"gc_collect": lambda _call: going})
    rig.submit("a", "gc_collect", deadline_s=5)
    rig.queue.run_at_boundary(1)
    return rig, going
