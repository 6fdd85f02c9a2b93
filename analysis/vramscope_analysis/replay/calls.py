"""The calls behind a trace: what the job asked its allocator for, whatever the allocator did."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.allocator import PoolId
from vramscope_analysis.replay.capacity import Capacity
from vramscope_analysis.replay.flushes import (
    Flush,
    flushes_of,
    immediate_frees,
    late_completions,
)
from vramscope_analysis.replay.pools import Pools
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

MALLOC: Final = 1
FREE: Final = 2
FREE_IN_USE: Final = 3
"""A free that waits: another stream had used the block (``record_stream``)."""
COMPLETE_FREE: Final = 4
OUT_OF_MEMORY: Final = 5
"""A request that was refused. Its size is the rounded one: the trace has no other."""
EMPTY_CACHE: Final = 6
RELEASE_POOL: Final = 7

CHUNK: Final = 1 << 15
"""Calls turned into Python objects at a time."""

Call = tuple[int, int, int, int, int, PoolId | None]
"""(operation, event, address, size in bytes, stream, pool; None is the default pool)."""


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls as columns, in the order in which they are to be made.

    Args:
        operations: one of the constants above.
        events: position of the entry that shows the call; never falls.
        addresses: recorded address of the block, which stands for the block.
        sizes: bytes as requested.
        streams: handle of the stream.
        pools: index into ``pool_ids``; None if all belong to the default pool.
        pool_ids: pools by index, the default one first.
    """

    operations: NDArray[np.uint8]
    events: NDArray[np.int64]
    addresses: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    streams: NDArray[np.int64]
    pools: NDArray[np.int32] | None
    pool_ids: list[PoolId]

    def __len__(self) -> int:
        return len(self.operations)

    def until(self, event: int) -> int:
        """How many calls come before an entry."""
        return int(np.searchsorted(self.events, event))

    def rows(self, start: int, stop: int) -> Iterator[Call]:
        """Calls from one position up to another."""
        by_index: list[PoolId | None] = [None, *self.pool_ids[1:]]
        for begin in range(start, stop, CHUNK):
            part = slice(begin, min(begin + CHUNK, stop))
            pools: Iterable[PoolId | None] = itertools.repeat(None, part.stop - begin)
            if self.pools is not None:
                indices: list[int] = self.pools[part].tolist()
                pools = [by_index[index] for index in indices]
            yield from zip(
                self.operations[part].tolist(),
                self.events[part].tolist(),
                self.addresses[part].tolist(),
                self.sizes[part].tolist(),
                self.streams[part].tolist(),
                pools,
                strict=True,
            )


def calls_of(recording: Recording, capacity: Capacity, *, start: int = 0) -> Calls:
    """The calls of a recording from an entry on.

    What the allocator did on its own is no call: segments that came, the flush before the last
    attempt (``malloc``), and what garbage collection gave back (``garbage_collect_cached_blocks``).

    Args:
        recording: the job.
        capacity: what bound it: tells a flush of the allocator's own from one that was asked for.
        start: first entry that counts.
    """
    plan = _Plan(recording)
    plan.failures_wait()
    threshold = recording.settings.garbage_collection_threshold
    for flush in flushes_of(recording):
        if capacity.refuses(flush):
            plan.flushed_by_request(flush)
        elif plan.is_of_users(flush) or not (
            flush.is_partial or capacity.collects(flush, threshold)
        ):
            plan.flushed_by_user(flush)
    return plan.calls(start)


class _Plan:
    """Calls while they are being put in order."""

    def __init__(self, recording: Recording) -> None:
        self._events = events = recording.events
        self._pools = Pools.of_recording(recording)
        self._late = late_completions(recording)
        self._operations = operations = np.zeros(len(events), dtype=np.uint8)
        operations[events.actions == Action.ALLOC] = MALLOC
        operations[events.actions == Action.OOM] = OUT_OF_MEMORY
        operations[events.actions == Action.FREE_REQUESTED] = FREE_IN_USE
        operations[immediate_frees(recording)] = FREE
        operations[self._late] = COMPLETE_FREE
        # Calls without an entry of their own (operation, event, index of the pool), and entries
        # whose call is made after that of a later one.
        self._extra: list[tuple[int, int, int]] = []
        self._moved: dict[int, int] = {}

    def flushed_by_request(self, flush: Flush) -> None:
        """A request found nothing, and waited for pending frees on its own.

        Completed before the request, they could let it find a block after all.
        """
        self._release_pools(flush, flush.cause)
        self._waits(flush.begin, flush.cause)

    def failures_wait(self) -> None:
        """A request that failed waited for pending frees, even where nothing could go back."""
        failures = np.flatnonzero(self._operations == OUT_OF_MEMORY)
        late = np.flatnonzero(self._late)
        if not len(failures) or not len(late):
            return
        # Segments that come and go in between are the allocator's doing as well.
        is_cause = (self._events.segment_signs == 0) & ~self._late
        causes = np.flatnonzero(is_cause)
        for failure in failures.tolist():
            at = int(np.searchsorted(causes, failure))
            self._waits(int(causes[at - 1]) + 1 if at else 0, failure)

    def _waits(self, begin: int, cause: int) -> None:
        """Frees that are completed in between belong to the request behind them."""
        waited_for = np.flatnonzero(self._late[begin:cause]) + begin
        self._moved.update(dict.fromkeys(waited_for.tolist(), cause))

    def is_of_users(self, flush: Flush) -> bool:
        """Whether somebody certainly asked for a flush.

        The allocator itself never flushes one private pool alone (``release_cached_blocks``).
        """
        return flush.is_users or (0 not in self._pools_of(flush))

    def flushed_by_user(self, flush: Flush) -> None:
        """Somebody called ``empty_cache``: of one private pool if only its segments went."""
        freed = self._release_pools(flush, flush.last)
        self._extra.append((EMPTY_CACHE, flush.last, freed.pop() if len(freed) == 1 else 0))

    def _release_pools(self, flush: Flush, event: int) -> set[int]:
        """Nobody uses a private pool any more when its segments go back."""
        freed = self._pools_of(flush)
        self._extra += [(RELEASE_POOL, event, pool) for pool in sorted(freed - {0})]
        return freed

    def _pools_of(self, flush: Flush) -> set[int]:
        """Indices of the pools whose memory went back."""
        of_event = self._pools.of_event
        if of_event is None:
            return {0}
        part = slice(flush.first, flush.last + 1)
        return set(of_event[part][self._events.segment_signs[part] < 0].tolist())

    def calls(self, start: int) -> Calls:
        """Everything in the order in which it is to be made."""
        events, of_event = self._events, self._pools.of_event
        entries = np.flatnonzero(self._operations)
        entries = entries[entries >= start]
        extra = np.array(self._extra, dtype=np.int64).reshape(-1, 3)
        extra = extra[extra[:, 1] >= start]
        at = np.concatenate((entries, extra[:, 1]))
        turn = np.ones(len(at), dtype=np.int8)
        turn[len(entries) :] = np.where(extra[:, 0] == EMPTY_CACHE, 1, 0)
        if self._moved:
            moved = np.flatnonzero(np.isin(entries, list(self._moved)))
            at[moved] = [self._moved[event] for event in entries[moved].tolist()]
            turn[moved] = 2
        order = np.lexsort((turn, at))
        none = np.zeros(len(extra), dtype=np.int64)
        pools = None
        if of_event is not None:
            pools = np.concatenate((of_event[entries], extra[:, 2].astype(np.int32)))[order]
        return Calls(
            operations=np.concatenate((self._operations[entries], extra[:, 0].astype(np.uint8)))[
                order
            ],
            events=at[order],
            addresses=np.concatenate((events.addresses[entries], none.astype(np.uint64)))[order],
            sizes=np.concatenate((events.sizes[entries], none))[order],
            streams=np.concatenate((events.streams[entries], none))[order],
            pools=pools,
            pool_ids=self._pools.ids,
        )
