"""The blocks that are in use: from being handed out until they are free again."""

from __future__ import annotations

from vramscope_analysis.allocator.block import NO_STREAMS, Block
from vramscope_analysis.allocator.pool import BlockPool, should_split
from vramscope_analysis.allocator.private_pools import PrivatePool, PrivatePools
from vramscope_analysis.allocator.state import AllocatorState


class ActiveBlocks:
    """What happens to blocks that are handed out, freed, or wait for another stream.

    ``pending`` are freed blocks that another stream may still use, ``deferred`` those that were
    freed during a capture, where nothing can be found out about streams. Both in the order in
    which they were freed.
    """

    def __init__(self, state: AllocatorState, pools: PrivatePools) -> None:
        self.pending: dict[Block, None] = {}
        self.deferred: dict[Block, None] = {}
        self._state = state
        self._pools = pools

    def hand_out(self, block: Block, rounded: int, size_bytes: int, *, expandable: bool) -> Block:
        """Split a block if it pays, and count what is handed out (``alloc_found_block``).

        Args:
            block: taken out of its pool.
            rounded: rounded size of the request.
            size_bytes: size as requested.
            expandable: whether expandable segments are active for the request.
        """
        state = self._state
        pool = block.pool
        settings = state.settings
        was_split = block.prev is not None or block.next is not None
        if should_split(block, rounded, settings, expandable=expandable):
            remaining = block
            block = block.segment.split(block, rounded)
            pool.insert(remaining)
            if block.segment.is_expandable:
                pass  # its pages can always go back: no piece counts as a split one
            elif was_split:
                _inactive_split_changed(pool, 0, -rounded)
            else:
                _inactive_split_changed(pool, 1, remaining.size_bytes)
        elif was_split and not block.segment.is_expandable:
            _inactive_split_changed(pool, -1, -block.size_bytes)
        block.allocated = True
        block.requested_bytes = size_bytes
        pool.stats.block_allocated(block.size_bytes, size_bytes)
        pool.stats_all.block_allocated(block.size_bytes, size_bytes)
        if block.size_bytes >= settings.max_split_size_bytes:
            state.counters.oversize_allocations.increase(1)
        if state.on_event is not None:
            state.on_event("alloc", block.address, size_bytes, block.stream, pool.pool_id)
        return block

    def record_stream(self, block: Block, stream: int) -> None:
        """Another stream uses a block (``recordStream``)."""
        if stream == block.stream:
            return
        block.stream_uses |= {stream}
        if self._pools.holds_back:
            block.capture_uses |= {stream}

    def free(self, block: Block) -> None:
        """A block is given back, but may have to wait for other streams (``free``).

        Raises:
            ValueError: the block is not handed out.
        """
        if not block.allocated:
            raise ValueError(f"expected an allocated block, got {block!r}")
        state = self._state
        block.allocated = False
        size_bytes = block.size_bytes
        pool = block.pool
        pool.stats.free_requested(size_bytes)
        pool.stats_all.free_requested(size_bytes)
        if size_bytes >= state.settings.max_split_size_bytes:
            state.counters.oversize_allocations.decrease(1)
        if state.on_event is not None:
            state.on_event(
                "free_requested", block.address, block.requested_bytes, block.stream, pool.pool_id
            )
        if block.stream_uses:
            block.pending = True
            waiting = self.deferred if self._pools.holds_back else self.pending
            waiting[block] = None
        else:
            self._make_free(block)

    def wait_for(self, block: Block) -> None:
        """A block in use has been freed already, and waits for streams that are not known."""
        block.allocated = False
        block.pending = True
        self.pending[block] = None
        for stats in (block.pool.stats, block.pool.stats_all):
            stats.free_requested(block.size_bytes)
        if block.size_bytes >= self._state.settings.max_split_size_bytes:
            self._state.counters.oversize_allocations.decrease(1)

    def complete(self, block: Block) -> None:
        """No stream uses a freed block any more (``process_events``).

        Raises:
            ValueError: the block waits for nothing.
        """
        for waiting in (self.pending, self.deferred):
            if block in waiting:
                del waiting[block]
                break
        else:
            raise ValueError(f"expected a block that was freed and waits, got {block!r}")
        block.pending = False
        block.stream_uses = NO_STREAMS
        self._make_free(block)

    def settle_deferred(self) -> None:
        """What was freed during a capture waits for its other streams from now on.

        Uses recorded during the capture are over with it
        (``insert_events_deferred_until_no_capture``).
        """
        for block in list(self.deferred):
            block.stream_uses -= block.capture_uses
            block.capture_uses = NO_STREAMS
            if block.stream_uses:
                del self.deferred[block]
                self.pending[block] = None
            else:
                self.complete(block)

    def synchronize(self, owner: PrivatePool | None = None) -> None:
        """Wait until no stream uses what was freed (``synchronize_and_free_events``).

        Args:
            owner: the private pool whose blocks are meant; ``None``: all blocks.
        """
        self._state.counters.num_sync_all_streams += 1
        self.settle_deferred()
        for block in list(self.pending):
            if owner is None or block.pool.owner is owner:
                self.complete(block)

    def _make_free(self, block: Block) -> None:
        """Join a block with its free neighbours and make it available (``free_block``)."""
        state = self._state
        pool = block.pool
        size_bytes = block.size_bytes
        requested_bytes = block.requested_bytes
        if state.on_event is not None:
            state.on_event(
                "free_completed", block.address, requested_bytes, block.stream, pool.pool_id
            )
        blocks_change = bytes_change = 0
        for neighbour in (block.prev, block.next):
            absorbed_bytes = pool.absorb(block, neighbour)
            if absorbed_bytes:
                blocks_change -= 1
                bytes_change -= absorbed_bytes
        pool.insert(block)
        if block.prev is not None or block.next is not None:
            blocks_change += 1
            bytes_change += block.size_bytes
        if (blocks_change or bytes_change) and not block.segment.is_expandable:
            _inactive_split_changed(pool, blocks_change, bytes_change)
        pool.stats.free_completed(size_bytes, requested_bytes)
        pool.stats_all.free_completed(size_bytes, requested_bytes)


def _inactive_split_changed(pool: BlockPool, blocks: int, size_bytes: int) -> None:
    pool.stats.inactive_split_changed(blocks, size_bytes)
    pool.stats_all.inactive_split_changed(blocks, size_bytes)
