"""Asks a rank by itself what grows there, when it is suspected that something does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from vramscope_protocol.commands import COMMANDS
from vramscope_protocol.errors import VramscopeError
from vramscope_server.auth.principal import VIEW, Principal
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest, Issuer
from vramscope_server.findings.across_ranks import GROWTH
from vramscope_server.findings.growth_answer import COMMAND
from vramscope_server.findings.record import FindingRecord

ISSUER: Final = "vramscope"

_logger = logging.getLogger("vramscope.findings")

_ASKED_FOR: Final = GROWTH | {"near_oom", "host_growth", "pinned_growth"}
_DEADLINE_S: Final = 600.0
"""Steps may be slow; the agent gives up by itself when nothing grows."""
_WAITS_S: Final = (0.0, 30.0, 120.0, 600.0)
"""After so many questions about a finding that stay without an answer that tells."""
_MAX_RUNS: Final = 1024


class Asking(Protocol):
    """Carries commands."""

    async def submit(self, run: str, request: CommandRequest, issuer: Issuer) -> CommandRecord:
        """Accept a command and hand it to every rank that is connected."""
        ...


@dataclass
class _Asked:
    """What was asked in one run."""

    command: CommandRecord | None = None
    """The newest question; at most one a run is open."""
    finding_id: str = ""
    times: int = 0
    """Questions about that finding."""
    next_s: float = 0.0


class Investigator:
    """Decides whom to ask, and when. One question a run at a time, later ones ever more seldom.

    Args:
        coordinator: carries the command, and writes it down as any other.
        clock_s: a clock that does not go back.
    """

    def __init__(self, coordinator: Asking, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._coordinator = coordinator
        self._clock_s = clock_s
        self._runs: dict[str, _Asked] = {}

    async def look(
        self, run_id: str, state: dict[str, Any], records: Sequence[FindingRecord]
    ) -> None:
        """Ask about what is suspected in a run, if it is time to.

        Args:
            run_id: the run.
            state: the run as the registry has it.
            records: its open findings.
        """
        asked = self._runs.setdefault(run_id, _Asked())
        self._forget_oldest()
        now_s = self._clock_s()
        if COMMAND not in COMMANDS or (asked.command is not None and not asked.command.is_final):
            return
        able = {
            rank["rank"]
            for rank in state["ranks"]
            if rank["connected"] and COMMAND in rank["commands"]
        }
        record, rank = _whom(records, able)
        if record is None or rank is None:
            return
        if record.id != asked.finding_id:
            asked.finding_id, asked.times = record.id, 0
        wait_s = _WAITS_S[min(asked.times, len(_WAITS_S) - 1)]
        if now_s < asked.next_s + wait_s:
            return
        asked.times += 1
        asked.next_s = now_s
        await self._ask(run_id, rank, asked)

    async def _ask(self, run_id: str, rank: int, asked: _Asked) -> None:
        principal = Principal(ISSUER, frozenset({VIEW}), fingerprint=f"{ISSUER} {run_id}")
        request = CommandRequest(COMMAND, [rank], {}, deadline_s=_DEADLINE_S)
        try:
            asked.command = await self._coordinator.submit(
                run_id, request, Issuer(principal, "server", "")
            )
        except VramscopeError as error:
            _logger.warning("rank %d of %s cannot be asked what grows: %s", rank, run_id, error)

    def _forget_oldest(self) -> None:
        while len(self._runs) > _MAX_RUNS:
            del self._runs[next(iter(self._runs))]


def _whom(
    records: Iterable[FindingRecord], able: set[int]
) -> tuple[FindingRecord | None, int | None]:
    """The suspicion that is oldest, and the first of its ranks that can answer."""
    suspected = [
        record
        for record in records
        if record.stage == "suspected" and record.kind in _ASKED_FOR and record.judge
    ]
    for record in sorted(suspected, key=lambda record: (record.opened_ns, record.id)):
        rank = min(able.intersection(record.ranks), default=None)
        if rank is not None:
            return record, rank
    return None, None
