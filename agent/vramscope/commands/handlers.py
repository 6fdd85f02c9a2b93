"""The table of what can be run, by the commands' names. What each does stands beside this file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from vramscope.commands.cache import cache_handlers
from vramscope.commands.call import Answer, Call, Handler
from vramscope.commands.counters import counter_handlers
from vramscope.commands.garbage_collector import garbage_collector_handlers
from vramscope.commands.libraries import library_handlers
from vramscope.commands.user import DECLARED, UserCommands
from vramscope.devices.device import Device
from vramscope_protocol.command_table import check_params, command_spec
from vramscope_protocol.commands import CommandSpec, Receipt
from vramscope_protocol.messages import Command
from vramscope_protocol.user_commands import PREFIX


class CommandHandlers:
    """Runs commands by name. Raises what goes wrong.

    The caller picks the thread and the moment; see ``CommandSpec.place``.

    Args:
        device: what the commands are about.
        more: commands of other parts of the agent.
        of_the_job: commands that the job declares.
    """

    def __init__(
        self,
        device: Device,
        more: Mapping[str, Handler] | None = None,
        of_the_job: UserCommands = DECLARED,
    ) -> None:
        self._device = device
        self._of_the_job = of_the_job
        self._handlers = {
            **cache_handlers(device),
            **counter_handlers(device),
            **library_handlers(device),
            **garbage_collector_handlers(),
            **(more or {}),
        }

    @property
    def names(self) -> list[str]:
        """Commands that can be run."""
        return [*self._handlers, *self._of_the_job.names()]

    def spec(self, name: str) -> CommandSpec:
        """The declaration of a command.

        Raises:
            VramscopeError: ``bad_request``, there is none of that name.
        """
        return self._of_the_job.spec(name) if name.startswith(PREFIX) else command_spec(name)

    def check(self, command: Command) -> Any:
        """The parameters of a command as its handler takes them.

        Raises:
            VramscopeError: ``bad_request``, with what is wrong.
        """
        if command.name.startswith(PREFIX):
            return self._of_the_job.check(command)
        return check_params(self.spec(command.name), command.params, dry_run=command.dry_run)

    def busy_reason(self) -> str | None:
        """Why no command may touch the device at this moment."""
        return self._device.busy_reason()

    def run(self, name: str, call: Call) -> Answer:
        """Run a command of :attr:`names`; a receipt has ``took_s`` filled in.

        Raises:
            VramscopeError: ``conflict``, there is nothing to run it on.
            Exception: whatever the device raises.
        """
        start_s = time.perf_counter()
        if name.startswith(PREFIX):
            answer: Answer = self._of_the_job.run(name, call)
        else:
            answer = self._handlers[name](call)
        if isinstance(answer, Receipt):
            answer.took_s = time.perf_counter() - start_s
            answer.dry_run = call.dry_run
        return answer
