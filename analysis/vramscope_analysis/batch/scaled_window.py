"""A recorded window with another batch size: larger requests to the allocator's model.

What is needed beyond the tensors themselves, because segments come in whole pieces and free pieces
lie between live ones, follows from no formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vramscope_analysis.allocator import Block, CachingAllocator, OutOfMemoryError, PoolId
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

    Raises:
        ValueError: nothing in it grows with the batch.
    """

    def __init__(self, recording: Recording) -> None:
        self._version = recording.version
        self._settings = recording.settings
        initial = None if recording.starts_empty else initial_state(recording)
        capacity = infer_capacity(recording, version=recording.version)
        self._calls = calls_of(recording, capacity, start=initial.position if initial else 0)
        self._held = list(held_blocks(initial.segments if initial else []))
        self._grows = _growing(self._held, self._calls)
        if not self._grows.any():
            raise ValueError("expected requests that depend on the batch, got none")

    def __len__(self) -> int:
        return len(self._calls)

    def at(self, factor: float, room_bytes: int | None) -> ScaledFit:
        """How it would have gone with another batch.

        Args:
            factor: how many times as large what depends on the batch is.
            room_bytes: what the allocator may hold; None is no end.
        """
        model = CachingAllocator(
            None, self._settings, limit_bytes=room_bytes, version=self._version
        )
        job = ReplayedJob(model, [])
        try:
            self._hold(job)
            self._replay(job, self._scaled(factor))
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

    def _hold(self, job: ReplayedJob) -> None:
        """Ask for what was there at its beginning, in the order of its places.

        What goes within the window is of a step before: of the size that it had, as after a change.
        """
        for address, size_bytes, stream, pool_id, is_pending in self._held:
            job.blocks[address] = job.model.malloc(size_bytes, stream, pool_id)
            if is_pending:
                job.call(FREE_IN_USE, address, pool_id)

    def _scaled(self, factor: float) -> Calls:
        sizes = self._calls.sizes
        larger = np.maximum(np.rint(sizes * factor), 1).astype(np.int64)
        return replace(self._calls, sizes=np.where(self._grows, larger, sizes))

    @staticmethod
    def _replay(job: ReplayedJob, calls: Calls) -> None:
        malloc, blocks = job.model.malloc, job.blocks
        for operation, _, address, size_bytes, stream, pool_id in calls.rows(0, len(calls)):
            if operation == MALLOC:
                block: Block = malloc(size_bytes, stream, pool_id)
                blocks[address] = block
            elif operation != OUT_OF_MEMORY:  # what was refused then is not asked for
                job.call(operation, address, pool_id)


def _growing(held: Sequence[Held], calls: Calls) -> NDArray[np.bool_]:
    """Which requests depend on the batch."""
    gone = set(calls.addresses[np.isin(calls.operations, (FREE, FREE_IN_USE))].tolist())
    # An address that is freed in the window was that of a block of its beginning only if no
    # request had it before.
    first = _first_uses(calls)
    lasting = {
        size_bytes
        for address, size_bytes, *_ in held
        if address not in gone or first[address] == MALLOC
    }
    constant = np.array(sorted(lasting), np.int64)
    grows = (calls.operations == MALLOC) & ~np.isin(calls.sizes, constant)
    return np.asarray(grows, np.bool_)


def _first_uses(calls: Calls) -> dict[int, int]:
    """By address, the first call that is about it."""
    addresses, first = np.unique(calls.addresses, return_index=True)
    return dict(zip(addresses.tolist(), calls.operations[first].tolist(), strict=True))
