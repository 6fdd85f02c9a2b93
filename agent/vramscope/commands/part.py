"""What lets a person act on the job: the queue of commands, and what stands still or ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vramscope.allowance import Allowance
from vramscope.commands.call import Call, Handler
from vramscope.commands.handlers import CommandHandlers
from vramscope.commands.pause import Pause
from vramscope.commands.queue import CommandQueue
from vramscope.commands.stacks import stack_handlers
from vramscope.commands.stop import Stop
from vramscope.config import Config
from vramscope.devices.device import Device
from vramscope.sampling.clock import Clock
from vramscope_protocol.messages import Command, CommandUpdate, Decision


class CommandPart:
    """Puts together what commands need.

    Args:
        config: what may be run.
        device: what commands are about.
        more: commands of other parts of the agent.
        clock: for deadlines and times.
        emit: takes each change of state; must not block.
        step: the steps finished so far.
        on_change: called on the training thread after commands that may have changed memory.
    """

    def __init__(
        self,
        config: Config,
        device: Device,
        more: Mapping[str, Handler],
        *,
        clock: Clock,
        emit: Callable[[CommandUpdate], None],
        step: Callable[[], int],
        on_change: Callable[[], object],
    ) -> None:
        self.stop = Stop(step)
        self.allowance = Allowance(config)
        self._pause = Pause(self._still_paused)
        own = {**stack_handlers(), **self._pause.handlers(), **self.stop.handlers()}
        self.queue = CommandQueue(
            CommandHandlers(device, {**own, **more}),
            clock=clock,
            emit=emit,
            allow=lambda: self.allowance.allow,
            allow_commands=config.allow_commands,
            on_change=on_change,
            step=step,
            on_coming=self._make_way,
        )

    def take(self, message: Command | Decision) -> None:
        """A command of the server, or its decision on one. Receiver thread."""
        if isinstance(message, Decision):
            self.queue.decide(message)
        else:
            self.queue.submit(message)

    @property
    def wanted(self) -> tuple[object, ...]:
        """What is not empty while a command waits, goes on or is prepared."""
        return self.queue.work

    @property
    def goes_on(self) -> bool:
        """Whether there is more to do than that: never."""
        return False

    def at_boundary(self, step: int) -> None:
        """A step has ended. Training thread."""
        self.queue.run_at_boundary(step)

    def close(self, reason: str) -> None:
        """End every command; training goes on."""
        self._pause.close("the agent has left")
        self.queue.close(reason)

    def _make_way(self, name: str) -> None:
        if name == "stop":  # for which training has to get to the end of a step
            self._pause.end("it was told to stop")

    def _still_paused(self, call: Call, text: str) -> None:
        self.queue.tell_progress(call.id, call.step, text)
