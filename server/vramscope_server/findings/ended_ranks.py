"""Findings end with their ranks: what held then is what the run has come to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from vramscope_server.findings.board import FindingsBoard
from vramscope_server.findings.record import FindingRecord
from vramscope_server.store.runs import RankSeen, ranks_seen
from vramscope_server.store.store import Store

_ELSEWHERE_NS: Final = 5 * 10**9
"""A rank that the store has heard of so much later is connected to another server."""


class RunStates(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class EndedRanks:
    """Looks which ranks are over.

    Args:
        store: knows of ranks that are connected to another server, too.
        registry: knows of those that are connected to this one.
        board: has the findings.
    """

    def __init__(self, store: Store, registry: RunStates, board: FindingsBoard) -> None:
        self._store = store
        self._registry = registry
        self._board = board

    async def look(self, is_awaited: Callable[[str, int], bool]) -> None:
        """End the findings whose ranks are over.

        Args:
            is_awaited: whether a rank is still to be judged after its end.
        """
        for run_id in self._board.runs():
            run = self._registry.run(run_id)
            if run is None:  # it is forgotten here: what held in it is taken up when it comes again
                for record in self._board.open_of(run_id):
                    self._board.forget(record)
                continue
            ends = _ends(run)
            if not ends:
                continue
            due = [each for each in self._board.open_of(run_id) if _is_over(each, run, ends)]
            ready = [each for each in due if not _is_any_awaited(each, ends, is_awaited)]
            if ready:
                seen = await self._store.read(partial(ranks_seen, run_id=run_id))
                for record in ready:
                    self._end(record, run, ends, seen)

    def _end(
        self,
        record: FindingRecord,
        run: dict[str, Any],
        ends: dict[int, int],
        seen: dict[int, RankSeen],
    ) -> None:
        ranks = record.ranks or tuple(ends)
        if record.resolved_ns is not None:
            return  # while the store was asked
        if any(_is_elsewhere(rank, seen) for rank in run["ranks"] if rank["rank"] in ranks):
            self._board.forget(record)
        else:
            self._board.resolve(record, max(ends[rank] for rank in ranks), is_final=True)


def _ends(run: dict[str, Any]) -> dict[int, int]:
    """When those ranks ended that have."""
    return {
        rank["rank"]: rank["ended_ns"] or rank["last_seen_ns"]
        for rank in run["ranks"]
        if rank["state"] != "live"
    }


def _is_over(record: FindingRecord, run: dict[str, Any], ends: dict[int, int]) -> bool:
    """Whether all ranks that it is about are over."""
    ranks = record.ranks or [rank["rank"] for rank in run["ranks"]]
    return all(rank in ends for rank in ranks)


def _is_any_awaited(
    record: FindingRecord, ends: dict[int, int], is_awaited: Callable[[str, int], bool]
) -> bool:
    # Those that are not asked in turn have said everything.
    return bool(record.judge) and any(
        is_awaited(record.run_id, rank) for rank in record.ranks or ends
    )


def _is_elsewhere(rank: dict[str, Any], seen: dict[int, RankSeen]) -> bool:
    stored = seen.get(rank["rank"])
    if stored is None:
        return False
    has_ended_there = stored.ended_ns is not None and rank["ended_ns"] is None
    return has_ended_there or stored.last_seen_ns > rank["last_seen_ns"] + _ELSEWHERE_NS
