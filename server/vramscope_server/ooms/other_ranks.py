"""Asks the other ranks what fills their memory when one has run out of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from vramscope_protocol.errors import VramscopeError
from vramscope_server.auth.principal import VIEW, Principal
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest, Issuer

COMMAND: Final = "oom_report"
ISSUER: Final = "vramscope"

_logger = logging.getLogger("vramscope.ooms")

_DEADLINE_S: Final = 30.0
_PAUSES_S: Final = (60.0, 300.0, 1800.0)
"""Between two questions in one run: a search for a batch size runs out again and again."""
_MAX_RUNS: Final = 1024
_SOURCES: Final = frozenset({"observer", "exception"})
_MAX_RANKS: Final = 64
"""Ranks that are asked at once, from the first on: so many reports say enough."""


class Asking(Protocol):
    """Carries commands."""

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        """Accept a command and hand it to every rank that is connected."""
        ...


class RunStates(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


@dataclass
class _Asked:
    times: int = 0
    next_s: float = 0.0


class OtherRanks:
    """Decides whether to ask. Lives on the event loop; nothing waits for the answers.

    Args:
        coordinator: carries the command, and writes it down as any other.
        registry: which ranks there are.
        clock_s: a clock that does not go back.
    """

    def __init__(
        self,
        coordinator: Asking,
        registry: RunStates,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._coordinator = coordinator
        self._registry = registry
        self._clock_s = clock_s
        self._runs: dict[str, _Asked] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def take_event(self, run_id: str, event: dict[str, Any]) -> None:
        """Something happened on a rank."""
        told = event["data"]
        identity = told.get("report")
        if event["kind"] != "oom" or told.get("source") not in _SOURCES:
            return
        if not isinstance(identity, str) or not 0 < len(identity) <= 128:
            return
        ranks = self._whom(run_id, event["rank"])
        asked = self._runs.setdefault(run_id, _Asked())
        while len(self._runs) > _MAX_RUNS:
            del self._runs[next(iter(self._runs))]
        now_s = self._clock_s()
        if not ranks or now_s < asked.next_s:
            return
        asked.next_s = now_s + _PAUSES_S[min(asked.times, len(_PAUSES_S) - 1)]
        asked.times += 1
        task = asyncio.create_task(self._ask(run_id, ranks, identity), name="vramscope-oom-ask")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _whom(self, run_id: str, rank: int | None) -> list[int]:
        state = self._registry.run(run_id)
        if state is None:
            return []
        able = [
            each["rank"]
            for each in state["ranks"]
            if each["connected"] and COMMAND in each["commands"] and each["rank"] != rank
        ]
        return sorted(able)[:_MAX_RANKS]

    async def _ask(self, run_id: str, ranks: list[int], identity: str) -> None:
        principal = Principal(ISSUER, frozenset({VIEW}), fingerprint=f"{ISSUER} {run_id}")
        request = CommandRequest(COMMAND, ranks, {"linked_to": identity}, deadline_s=_DEADLINE_S)
        try:
            await self._coordinator.submit(run_id, request, Issuer(principal, "server", ""))
        except VramscopeError as error:
            _logger.warning("the other ranks of %s cannot be asked: %s", run_id, error)
