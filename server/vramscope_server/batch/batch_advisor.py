"""Says how large a batch may be, for whoever asks: reads, advises, and replays where it can."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from vramscope_analysis.batch.batch_advice import BatchAdvice, Silence, batch_advice, below_failed
from vramscope_analysis.batch.batch_sizes import batch_sizes
from vramscope_analysis.batch.batch_steps import batch_steps
from vramscope_analysis.batch.run_advice import RunAdvice, run_advice
from vramscope_analysis.evidence.columns import Rows
from vramscope_protocol.messages import RankInfo
from vramscope_server.batch.rank_steps import RankSteps
from vramscope_server.batch.window_replays import Window, WindowReplays, newest_window
from vramscope_server.store import command_log, snapshots
from vramscope_server.store.store import Store

MOST_RANKS: Final = 64
"""So many ranks of a run are read, from the first on."""

_FRESH_S: Final = 1.0
_SHARE: Final = 20.0
"""What took long is asked again after so many times as long: 5 % of a core."""
_MOST_KEPT: Final = 64
_MOST_SNAPSHOTS: Final = 16
_MOST_COMMANDS: Final = 64


class RunStates(Protocol):
    """What is read of the registry."""

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...

    def rank_info(self, run_id: str, rank: int) -> RankInfo | None:
        """What a rank said of itself when it registered last."""
        ...


@dataclass(frozen=True)
class _Told:
    """What the ranks tell, with the newest window of each that has one."""

    ranks: dict[int, BatchAdvice | Silence]
    windows: dict[int, Window]
    tried: dict[int, frozenset[int]]
    since_ns: dict[int, int]
    """When the steps of each rank begin that are read."""
    failed: list[tuple[int, int]]
    """Changes with which memory ran out: when, and to how many samples."""
    until_s: float


class BatchAdvisor:
    """Lives on the event loop; reading and advising is done in the store's threads.

    Args:
        store: where steps and snapshots are.
        registry: which ranks there are.
        replays: replays what was recorded.
        clock_s: a clock that does not go back.
    """

    def __init__(
        self,
        store: Store,
        registry: RunStates,
        replays: WindowReplays,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._registry = registry
        self._replays = replays
        self._clock_s = clock_s
        self._steps = RankSteps(store, registry)
        self._told: OrderedDict[tuple[str, float], _Told] = OrderedDict()

    @property
    def is_replaying(self) -> bool:
        """Whether a window is being replayed: a better answer is to come."""
        return self._replays.is_busy

    async def advise(self, run_id: str, head_room: float) -> RunAdvice | Silence:
        """The advice for a run, or why there is none.

        Args:
            run_id: a run that is known.
            head_room: part of the limit that is to stay free.
        """
        state = self._registry.run(run_id)
        if state is None:
            return "no_steps"
        told = await self._ask(run_id, state, head_room)
        ranks = dict(told.ranks)
        for rank, window in told.windows.items():
            advice = ranks[rank]
            if isinstance(advice, BatchAdvice):
                ranks[rank] = self._replays.refined(advice, window)
        for rank, advice in ranks.items():
            failed = [size for since_ns, size in told.failed if since_ns >= told.since_ns[rank]]
            if isinstance(advice, BatchAdvice) and failed:
                ranks[rank] = below_failed(advice, min(failed))
        return run_advice(ranks, state["world_size"])

    async def tried(self, run_id: str, head_room: float) -> dict[int, frozenset[int]]:
        """By rank, the sizes that were seen often enough to be evidence."""
        state = self._registry.run(run_id)
        return {} if state is None else (await self._ask(run_id, state, head_room)).tried

    async def stop(self) -> None:
        """End the replays."""
        await self._replays.stop()

    async def _ask(self, run_id: str, state: dict[str, Any], head_room: float) -> _Told:
        key = run_id, head_room
        known = self._told.get(key)
        begun_s = self._clock_s()
        if known is not None and begun_s < known.until_s:
            return known
        newest = {rank["rank"]: rank["step"] for rank in state["ranks"][:MOST_RANKS]}
        taken = await self._store.read(partial(_snapshots, run_id=run_id))
        failed = await self._store.read(partial(_failed, run_id=run_id))
        told = await self._store.compute(lambda: self._read(run_id, newest, taken, head_room))
        took_s = self._clock_s() - begun_s
        told = _Told(
            told.ranks,
            told.windows,
            told.tried,
            told.since_ns,
            failed,
            self._clock_s() + max(_FRESH_S, _SHARE * took_s),
        )
        self._told[key] = told
        self._told.move_to_end(key)
        while len(self._told) > _MOST_KEPT:
            self._told.popitem(last=False)
        return told

    def _read(
        self,
        run_id: str,
        newest: dict[int, int | None],
        taken: list[dict[str, Any]],
        head_room: float,
    ) -> _Told:
        told = _Told({}, {}, {}, {}, [], 0.0)
        for rank, step in newest.items():
            evidence = self._steps.read(run_id, rank, step)
            told.ranks[rank] = batch_advice(evidence, head_room)
            told.tried[rank] = frozenset(batch_steps(evidence).tried)
            rows = evidence.steps
            since_ns = int(rows.time_ns[0]) if len(rows) else 0
            told.since_ns[rank] = since_ns
            window = newest_window(taken, rank, _sizes(rows), since_ns)
            if window is not None:
                told.windows[rank] = window
        return told


def _snapshots(connection: Connection, run_id: str) -> list[dict[str, Any]]:
    return snapshots.of_run(connection, run_id, _MOST_SNAPSHOTS)


def _failed(connection: Connection, run_id: str) -> list[tuple[int, int]]:
    """Changes of the batch size with which memory ran out, as the ranks have told."""
    found: list[tuple[int, int]] = []
    for command in command_log.list_commands(connection, run_id, limit=_MOST_COMMANDS):
        size = command["params"].get("batch_size")
        results: list[Any] = [receipt["result"] for receipt in command["receipts"].values()]
        if isinstance(size, int) and {"ran_out": True} in results:
            found.append((command["created_ns"], size))
    return found


def _sizes(rows: Rows) -> dict[int, int]:
    """Samples of a forward pass by step."""
    if rows.number is None:
        return {}
    sizes = zip(rows.number.tolist(), batch_sizes(rows).tolist(), strict=True)
    return {step: int(size) for step, size in sizes if size >= 1}
