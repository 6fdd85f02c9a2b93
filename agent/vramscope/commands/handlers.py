"""The table of what can be run, by the commands' names. What each does stands beside this file."""

from __future__ import annotations

import time
from collections.abc import Mapping

from vramscope.commands.cache import cache_handlers
from vramscope.commands.call import Answer, Call, Handler
from vramscope.commands.counters import counter_handlers
from vramscope.devices.device import Device
from vramscope_protocol.commands import Receipt


class CommandHandlers:
    """Runs commands by name. Raises what goes wrong.

    The caller picks the thread and the moment; see ``CommandSpec.place``.

    Args:
        device: what the commands are about.
        more: commands of other parts of the agent.
    """

    def __init__(self, device: Device, more: Mapping[str, Handler] | None = None) -> None:
        self._device = device
        self._handlers = {**cache_handlers(device), **counter_handlers(device), **(more or {})}

    @property
    def names(self) -> list[str]:
        """Commands that can be run."""
        return list(self._handlers)

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
        answer = self._handlers[name](call)
        if isinstance(answer, Receipt):
            answer.took_s = time.perf_counter() - start_s
            answer.dry_run = call.dry_run
        return answer
