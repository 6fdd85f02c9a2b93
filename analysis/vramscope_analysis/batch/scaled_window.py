"""A recorded window with another batch size: larger requests to the allocator's model.

What is needed beyond the tensors themselves, because segments come in whole pieces and free pieces
lie between live ones, follows from no formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.allocator import CachingAllocator, OutOfMemoryError, PoolId
from vramscope_analysis.replay.calls import (
    FREE,
    FREE_IN_USE,
    MALLOC,
    OUT_OF_MEMORY,
    Calls,
    calls_of,
)
from vramscope_analysis.replay.capacity_inference import infer_capacity
from vramscope_analysis.replay.past.initial_state import initial_state
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.replay.replayed_job import ReplayedJob, held_blocks

Held: TypeAlias = tuple[int, int, int, PoolId, bool]
"""Address, size as requested, stream, pool, and whether it waits for a stream."""

_FREES: Final = frozenset({FREE, FREE_IN_USE})


@dataclass(frozen=True)
class ScaledFit:
    """How a window would have gone.

    Args:
        fits: whether nothing was refused.
        peak_bytes: most that tensors took, as far as it went.
        reserved_bytes: most that was held from the device.
        retries: how often the cache was flushed because a request found no room.
    """

    fits: bool
    peak_bytes: int
    reserved_bytes: int
    retries: int


class ScaledWindow:
    """A window whose requests can be made larger.

    Blocks that came and went within it are taken to grow with the batch, but for those that are as
    large as one that stayed throughout: gradients are as large as their parameters.

    Args:
        recording: the window.
        first_end_us: when its first step ended; None is not known.

    Raises:
        ValueError: nothing in it grows with the batch.
    """

    def __init__(self, recording: Recording, first_end_us: int | None = None) -> None:
        self._version = recording.version
        self._settings = recording.settings
        initial = None if recording.starts_empty else initial_state(recording)
        capacity = infer_capacity(recording, version=recording.version)
        self._segments = initial.segments if initial else []
        calls = calls_of(recording, capacity, start=initial.position if initial else 0)
        held = list(held_blocks(self._segments))
        self._whole = _Part.of(held, calls)
        self._lasting = self._whole.lasting
        self._constant = np.array(sorted({size for _, size, *_ in self._lasting}), np.int64)
        if not self._growing(calls).any():
            raise ValueError("expected requests that depend on the batch, got none")
        times_us = recording.events.times_us[np.minimum(calls.events, len(recording.events) - 1)]
        end_us = times_us[-1] if first_end_us is None else first_end_us
        of_first = int(np.searchsorted(times_us, end_us, side="right"))
        self._first = _Part.of(held, _until(calls, of_first)) if of_first else self._whole

    def __len__(self) -> int:
        return len(self._whole.calls)

    def changed(self, factor: float, room_bytes: int | None) -> ScaledFit:
        """How it would have gone on with another batch, from the segments that it had.

        Args:
            factor: how many times as large what depends on the batch is.
            room_bytes: what the allocator may hold; None is no end.
        """

        def work(job: ReplayedJob) -> None:
            self._replay(job, self._whole, factor)
            self._replay(job, self._whole, factor)

        return self._fit(room_bytes, self._segments, work)

    def begun(self, factor: float, room_bytes: int | None, state_bytes: int) -> ScaledFit:
        """How it would have gone from the start: the optimizer's state comes after a first step.

        Args:
            factor, room_bytes: as above.
            state_bytes: what the optimizer's state comes to.
        """
        early, late = self._by_turn(state_bytes)

        def work(job: ReplayedJob) -> None:
            for blocks, part in ((early, self._first), (late, self._whole)):
                for address, size_bytes, stream, pool_id, _ in blocks:
                    job.blocks[address] = job.model.malloc(size_bytes, stream, pool_id)
                self._replay(job, part, factor)

        return self._fit(room_bytes, [], work)

    def _fit(
        self,
        room_bytes: int | None,
        segments: list[dict[str, Any]],
        work: Callable[[ReplayedJob], None],
    ) -> ScaledFit:
        model = CachingAllocator(
            None, self._settings, limit_bytes=room_bytes, version=self._version
        )
        job = ReplayedJob(model, segments)
        try:
            work(job)
            fits = True
        except OutOfMemoryError:
            fits = False
        counters = model.counters
        return ScaledFit(
            fits,
            counters.all.active_bytes.peak,
            counters.all.reserved_bytes.peak,
            counters.num_alloc_retries,
        )

    def _by_turn(self, state_bytes: int) -> tuple[list[Held], list[Held]]:
        """What is there before the first step, and what comes after it. By addresses: what was
        asked for later lies, as a rule, behind."""
        lasting = self._lasting
        early_bytes = sum(size for _, size, *_ in lasting) - state_bytes
        early, late = list[Held](), list[Held]()
        for block in lasting:
            (early if early_bytes > 0 else late).append(block)
            early_bytes -= block[1]
        return early, late

    def _growing(self, calls: Calls) -> NDArray[np.bool_]:
        """Which requests depend on the batch."""
        grows = (calls.operations == MALLOC) & ~np.isin(calls.sizes, self._constant)
        return np.asarray(grows, np.bool_)

    def _replay(self, job: ReplayedJob, part: _Part, factor: float) -> None:
        """Go through it once, and leave everything as it was at its beginning."""
        larger = np.maximum(np.rint(part.calls.sizes * factor), 1).astype(np.int64)
        grows = self._growing(part.calls)
        calls = replace(part.calls, sizes=np.where(grows, larger, part.calls.sizes))
        malloc, blocks = job.model.malloc, job.blocks
        for operation, _, address, size_bytes, stream, pool_id in calls.rows(0, len(calls)):
            if operation == MALLOC:
                blocks[address] = malloc(size_bytes, stream, pool_id)
            elif operation != OUT_OF_MEMORY:  # what was refused then is not asked for
                job.call(operation, address, pool_id)
        left = {address: blocks.pop(address) for address in part.left if address in blocks}
        for before, address in part.same.items():
            if address in left:
                blocks[before] = left.pop(address)
        for block in left.values():
            job.model.free(block)


@dataclass(frozen=True)
class _Part:
    """Calls, and what is held at both of their ends.

    Args:
        calls: some of a window, from its beginning on.
        lasting: blocks that are there throughout, by address.
        left: addresses of those that came within it and are there at its end.
        same: for each block of its beginning that goes within it, the one of its end that stands
            in its place: the loss or the gradients of the step before.
    """

    calls: Calls
    lasting: list[Held]
    left: list[int]
    same: dict[int, int]

    @classmethod
    def of(cls, held: Sequence[Held], calls: Calls) -> _Part:
        sizes: dict[int, int] = {}
        gone: set[int] = set()
        asked: dict[int, int] = {}
        sizes.update((address, size_bytes) for address, size_bytes, *_ in held)
        for operation, _, address, size_bytes, *_ in calls.rows(0, len(calls)):
            if operation == MALLOC:
                asked[address] = size_bytes
            elif operation in _FREES and asked.pop(address, None) is None:
                gone.add(address)
        lasting = [block for block in held if block[0] not in gone]
        by_size: dict[int, list[int]] = {}
        for address, size_bytes in asked.items():
            by_size.setdefault(size_bytes, []).append(address)
        same = {
            address: by_size[sizes[address]].pop()
            for address in sorted(gone & sizes.keys())
            if by_size.get(sizes[address])
        }
        return cls(calls, lasting, list(asked), same)


def _until(calls: Calls, stop: int) -> Calls:
    return replace(
        calls,
        operations=calls.operations[:stop],
        events=calls.events[:stop],
        addresses=calls.addresses[:stop],
        sizes=calls.sizes[:stop],
        streams=calls.streams[:stop],
        pools=None if calls.pools is None else calls.pools[:stop],
    )
