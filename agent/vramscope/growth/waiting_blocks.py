"""Blocks that are free already, and wait for another stream, by the stack that allocated them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from vramscope.devices.caching_allocator import current_bytes
from vramscope.growth.live_blocks import Stack, stack_of

WAITING_STATES: Final = frozenset({"active_pending_free", "active_awaiting_free"})
"""The second one is that of older releases."""
LEAST_BYTES: Final = 8 << 20
"""What waits is not worth a look below this, ..."""
LEAST_SHARE: Final = 0.02
"""... nor below this part of all that is active."""
MAX_GROUPS: Final = 5
MAX_LOOKS: Final = 8
_MORE: Final = 1.25


class WaitingGroup(Struct):
    """Blocks of one source that wait, and of which stream they are: they wait for another one."""

    stack: Stack
    stream: int
    bytes: int = 0
    count: int = 0


class WaitingBlocks:
    """Keeps the moment at which most of what waited had a known stack."""

    def __init__(self) -> None:
        self.groups: list[WaitingGroup] = []
        """The largest first."""
        self._known_bytes = 0
        self._looks = 0

    def are_more(self, stats: Mapping[str, Any] | None) -> bool:
        """Whether clearly more waits now than was seen, and enough to matter.

        Args:
            stats: counters of the device.
        """
        active_bytes = current_bytes(stats, "active_bytes")
        waiting_bytes = active_bytes - current_bytes(stats, "allocated_bytes")
        least_bytes = max(LEAST_BYTES, LEAST_SHARE * active_bytes, _MORE * self._known_bytes)
        return self._looks < MAX_LOOKS and waiting_bytes >= least_bytes

    def take(self, segments: Iterable[Mapping[str, Any]]) -> None:
        """Take a look. Nothing of ``segments`` is kept."""
        self._looks += 1
        found: dict[tuple[Stack, int], WaitingGroup] = {}
        for segment in segments:
            for block in segment["blocks"]:
                if block["state"] in WAITING_STATES and block.get("frames"):
                    key = (stack_of(block["frames"]), int(segment.get("stream", 0)))
                    group = found.setdefault(key, WaitingGroup(*key))
                    group.bytes += block["size"]
                    group.count += 1
        known_bytes = sum(group.bytes for group in found.values())
        if known_bytes <= self._known_bytes:
            return
        self._known_bytes = known_bytes
        least_bytes = max(LEAST_BYTES, LEAST_SHARE * known_bytes)
        groups = sorted(found.values(), key=lambda group: -group.bytes)
        self.groups = [group for group in groups if group.bytes >= least_bytes][:MAX_GROUPS]
