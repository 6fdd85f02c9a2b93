"""A job that makes its recorded calls to a model of the allocator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from vramscope_analysis.allocator import DEFAULT_POOL_ID, Block, CachingAllocator, PoolId
from vramscope_analysis.replay.calls import (
    COMPLETE_FREE,
    EMPTY_CACHE,
    FREE,
    FREE_IN_USE,
    RELEASE_POOL,
)

_FREE: Final = "inactive"
_PENDING: Final = "active_pending_free"

OTHER_STREAM: Final = -1
"""Stands for the streams that used a block: the trace shows that there were some, not which."""


def held_blocks(
    segments: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[int, int, int, PoolId, bool]]:
    """What a job holds in segments: address, request, stream, pool, and whether it is freed already
    and still in use by another stream."""
    for segment in segments:
        pool_id: Any = segment.get("segment_pool_id") or DEFAULT_POOL_ID
        address = int(segment["address"])
        for block in segment["blocks"]:
            size_bytes = int(block["size"])
            if block["state"] != _FREE:
                asked = int(block.get("requested_size") or 0) or size_bytes
                is_pending = block["state"] == _PENDING
                yield address, asked, int(segment["stream"]), tuple(pool_id), is_pending
            address += size_bytes


class ReplayedJob:
    """The blocks that a job holds, by the addresses that they had when it was recorded.

    Args:
        model: the allocator, empty.
        segments: what was held when the replay begins, in PyTorch's structure.
    """

    def __init__(self, model: CachingAllocator, segments: list[dict[str, Any]]) -> None:
        self.model = model
        self.blocks: dict[int, Block] = {}
        self.unknown_frees = 0
        self._waiting: dict[int, Block] = {}
        for address, block in model.restore(segments).items() if segments else ():
            (self._waiting if block.pending else self.blocks)[address] = block

    def call(self, operation: int, address: int, pool_id: PoolId | None) -> None:
        """Make any call but a request.

        A block that the job does not hold, because its request failed here or came before
        everything that is known, is counted and left alone.
        """
        if operation == FREE:
            self._free(address)
        elif operation == FREE_IN_USE:
            block = self.blocks.get(address)
            if block is not None:
                self.model.record_stream(block, OTHER_STREAM)
                self._waiting[address] = block
            self._free(address)
        elif operation == COMPLETE_FREE:
            self._complete_free(address)
        elif operation == EMPTY_CACHE:
            self.model.empty_cache(DEFAULT_POOL_ID if pool_id is None else pool_id)
        elif operation == RELEASE_POOL and pool_id is not None:
            # A pool whose release was seen before, and that still holds something, is at none.
            with contextlib.suppress(ValueError):
                self.model.release_pool(pool_id)
        else:
            raise ValueError(f"expected a call that is no request, got {operation}")

    def _free(self, address: int) -> None:
        block = self.blocks.pop(address, None)
        if block is None:
            self.unknown_frees += 1
        else:
            self.model.free(block)

    def _complete_free(self, address: int) -> None:
        block = self._waiting.pop(address, None)
        if block is None:
            self._free(address)  # its free_requested is not in the trace
        elif block.pending:  # a flush of the allocator has not waited for it already
            self.model.complete_free(block)
