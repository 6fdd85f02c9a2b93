"""Asks a rank by itself what grows there, when it is suspected that something does."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from vramscope_analysis.diagnosis.questions import COMMAND, Question
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.commands import FINAL_STATES
from vramscope_protocol.errors import VramscopeError
from vramscope_server.auth.principal import VIEW, Principal
from vramscope_server.commands.record import CommandRecord
from vramscope_server.commands.request import CommandRequest, Issuer
from vramscope_server.findings.across_ranks import GROWTH
from vramscope_server.findings.record import FindingRecord

ISSUER: Final = "vramscope"

_logger = logging.getLogger("vramscope.findings")

_UNDERSTOOD: Final = GROWTH - {"retention"}
"""What was kept once, or waits for a stream, says nothing of what grows beside it."""
_HOST_GROWTH: Final = frozenset({"host_growth", "pinned_growth"})
_NO_ANSWER: Final = FINAL_STATES - {"done"}
_DEADLINE_S: Final = 600.0
"""Steps may be slow; the agent gives up by itself when nothing grows."""
_LONGEST_WAIT_S: Final = 600.0
_COUNTED_S: Final = 1800.0
"""Questions of this last time make the next one wait."""
_MAX_HOST_TIMES: Final = 4
"""A rank that was asked so often is not asked about its host any more."""
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
    times_s: deque[float] = field(default_factory=deque[float])
    """When questions of the last time were asked."""
    ranks: dict[int, int] = field(default_factory=dict[int, int])
    """How often each rank was asked."""


class Investigator:
    """Decides whom to ask, and when. One question a run at a time, each later one later.

    Args:
        coordinator: carries the command, and writes it down as any other.
        clock_s: a clock that does not go back.
        first_wait_s: before a run is asked for the second time.
    """

    def __init__(
        self,
        coordinator: Asking,
        clock_s: Callable[[], float] = time.monotonic,
        first_wait_s: float = 5.0,
    ) -> None:
        self._coordinator = coordinator
        self._first_wait_s = first_wait_s
        self._clock_s = clock_s
        self._runs: OrderedDict[str, _Asked] = OrderedDict()

    async def look(
        self,
        run_id: str,
        state: dict[str, Any],
        records: Sequence[FindingRecord],
        questions: Sequence[Question],
    ) -> None:
        """Ask about what is suspected in a run, if it is time to.

        Args:
            run_id: the run.
            state: the run as the registry has it.
            records: its open findings.
            questions: what the judges would like to know, the most urgent first.
        """
        asked = self._asked(run_id)
        if asked.command is not None and asked.command.state in _NO_ANSWER:
            # It could not answer yet: that time does not count.
            (rank,), asked.command = asked.command.ranks, None
            asked.ranks[rank] -= 1
        is_asking = asked.command is not None and not asked.command.is_final
        if COMMAND not in COMMANDS or is_asking or not self._is_time(asked):
            return
        able = {
            rank["rank"]
            for rank in state["ranks"]
            if rank["connected"] and COMMAND in rank["commands"]
        }
        # A rank that was asked less often may tell more.
        wanted = sorted(
            (one for one in _wanted(records, questions, asked.ranks) if one.rank in able),
            key=lambda question: asked.ranks.get(question.rank, 0),
        )
        if wanted:
            await self._ask(run_id, wanted[0], asked)

    def _asked(self, run_id: str) -> _Asked:
        asked = self._runs.setdefault(run_id, _Asked())
        self._runs.move_to_end(run_id)
        while len(self._runs) > _MAX_RUNS:
            self._runs.popitem(last=False)
        return asked

    def _is_time(self, asked: _Asked) -> bool:
        now_s = self._clock_s()
        while asked.times_s and now_s - asked.times_s[0] > _COUNTED_S:
            asked.times_s.popleft()
        if not asked.times_s:
            return True
        doublings = min(len(asked.times_s) - 1, 16)
        wait_s: float = min(_LONGEST_WAIT_S, self._first_wait_s * 2**doublings)
        return now_s - asked.times_s[-1] >= wait_s

    async def _ask(self, run_id: str, question: Question, asked: _Asked) -> None:
        asked.times_s.append(self._clock_s())
        asked.ranks[question.rank] = asked.ranks.get(question.rank, 0) + 1
        principal = Principal(ISSUER, frozenset({VIEW}), fingerprint=f"{ISSUER} {run_id}")
        request = CommandRequest(
            COMMAND, [question.rank], dict(question.params), deadline_s=_DEADLINE_S
        )
        try:
            asked.command = await self._coordinator.submit(
                run_id, request, Issuer(principal, "server", "")
            )
        except VramscopeError as error:
            _logger.warning(
                "rank %d of %s cannot be asked what grows: %s",
                question.rank,
                run_id,
                error.message,
            )


def _wanted(
    records: Sequence[FindingRecord], questions: Sequence[Question], asked: Mapping[int, int]
) -> Iterator[Question]:
    """Questions whose answer no other rank has given, then those about growing host memory."""
    understood = {
        rank
        for record in records
        if record.stage == "confirmed" and record.kind in _UNDERSTOOD
        for rank in record.ranks
    }
    for question in questions:
        # What builds up within steps is told before it is known who holds it.
        if question.rank not in understood or "above_bytes" in question.params:
            yield question
    for record in records:
        if record.stage == "suspected" and record.kind in _HOST_GROWTH:
            for rank in record.ranks:
                if asked.get(rank, 0) < _MAX_HOST_TIMES:
                    yield Question(rank, record.summary, {"host": True})
