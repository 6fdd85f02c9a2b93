"""Where the free memory of a device lies: by pool and stream, and beside what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PRIVATE: Final = "private"
"""The pool of segments that graphs and pools of the job keep to themselves."""


@dataclass(frozen=True)
class PoolLayout:
    """One pool of one stream: what one stream has free, no other can use.

    Args:
        pool: ``small``, ``large`` or ``private``.
        stream: its handle.
        reserved_bytes: held from the device.
        free_bytes: of that, not in live blocks.
        pieces: how many free blocks that is.
        largest_bytes: the largest of them.
        between_bytes: the largest there would be if nothing but blocks that stay were left.
        returnable_bytes: free, and the device could have it back.
        pinned_bytes: free beside live blocks that all stay, so that it never can.
        is_expandable: its segments grow in place.
    """

    pool: str
    stream: int
    reserved_bytes: int
    free_bytes: int
    pieces: int
    largest_bytes: int
    between_bytes: int
    returnable_bytes: int
    pinned_bytes: int
    is_expandable: bool

    @property
    def live_bytes(self) -> int:
        """In live blocks."""
        return self.reserved_bytes - self.free_bytes


@dataclass(frozen=True)
class Pin:
    """Blocks of one name that keep segments from being given back.

    Args:
        name: of the blocks.
        blocks: how many.
        live_bytes: in them.
        pinned_bytes: free in their segments.
    """

    name: str
    blocks: int
    live_bytes: int
    pinned_bytes: int


@dataclass(frozen=True)
class MemoryLayout:
    """All pools at one moment.

    Args:
        pools: those with most free first.
        pins: what keeps most from being given back, the most first.
        time_ns, step: of that moment.
        is_step_end: it lies between two steps.
        limit_bytes: what the process may hold then; None is not known.
        device_free_bytes: what the driver had left; None is not known.
        is_exact: every block of large segments is known.
    """

    pools: tuple[PoolLayout, ...]
    pins: tuple[Pin, ...] = ()
    time_ns: int = 0
    step: int | None = None
    is_step_end: bool = False
    limit_bytes: int | None = None
    device_free_bytes: int | None = None
    is_exact: bool = True

    @property
    def reserved_bytes(self) -> int:
        """Held from the device, private pools included."""
        return sum(pool.reserved_bytes for pool in self.pools)

    @property
    def shared(self) -> tuple[PoolLayout, ...]:
        """The pools that any request of their stream may use."""
        return tuple(pool for pool in self.pools if pool.pool != PRIVATE)

    @property
    def free_bytes(self) -> int:
        """Free outside of private pools."""
        return sum(pool.free_bytes for pool in self.shared)

    @property
    def largest_bytes(self) -> int:
        """The largest free block outside of private pools."""
        return max((pool.largest_bytes for pool in self.shared), default=0)

    @property
    def returnable_bytes(self) -> int:
        """What the device could have back."""
        return sum(pool.returnable_bytes for pool in self.shared)

    @property
    def pinned_bytes(self) -> int:
        """Free beside blocks that stay."""
        return sum(pool.pinned_bytes for pool in self.shared)

    @property
    def main_stream(self) -> int | None:
        """The stream with most in use; None where there is nothing."""
        live: dict[int, tuple[int, int]] = {}
        for pool in self.shared:
            so_far = live.get(pool.stream, (0, 0))
            live[pool.stream] = so_far[0] + pool.live_bytes, so_far[1] + pool.reserved_bytes
        return max(live, key=lambda stream: live[stream], default=None)

    def pool_of(self, pool: str, stream: int) -> PoolLayout | None:
        """One of them."""
        wanted = (each for each in self.pools if (each.pool, each.stream) == (pool, stream))
        return next(wanted, None)
