"""The looks of one watch: when memory falls, it begins anew."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from vramscope.growth.groups import Group, growing_groups, rise
from vramscope.growth.live_blocks import LiveBlocks
from vramscope.growth.pace import spread

MAX_LOOKS: Final = 32
MAX_FALLS: Final = 4
LEAST_LOOKS: Final = 3
_EXPLAINED: Final = 0.5
"""Part of what memory grew by that growing groups must make up, to be the explanation of it."""
_FALLEN: Final = 0.25
"""Part of what memory grew by whose loss begins the looks anew: a collection has freed it."""


class LookedAt(Protocol):
    """A device with counters, segments and tensors."""

    def memory_stats(self) -> Mapping[str, Any] | None:
        """Counters; ``None`` if not up."""
        ...

    def segments(self) -> list[dict[str, Any]]:
        """Segments with their blocks."""
        ...

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        """Address and bytes of a tensor's storage."""
        ...


class Looks:
    """What was live at the ends of some steps.

    Args:
        before: the segments as they were when the recording began.
        wanted: how many step ends are to be compared.
        falls: how often they were begun anew already.
    """

    def __init__(self, before: Iterable[Mapping[str, Any]], wanted: int, falls: int = 0) -> None:
        self.blocks = LiveBlocks(before)
        self.steps: list[int] = []
        self.live_bytes: list[int] = []
        self.falls = falls
        """How often they were begun anew."""
        self._wanted = wanted
        self._collected = 0
        self._checked = 0
        self._first = 0

    @property
    def count(self) -> int:
        """How many there are that can be compared."""
        return self.blocks.looks - self._first

    @property
    def are_full(self) -> bool:
        """Whether there is no room for more, or memory has fallen too often."""
        return self.blocks.looks >= MAX_LOOKS or self.falls >= MAX_FALLS

    def take(
        self,
        segments: Iterable[Mapping[str, Any]],
        step: int,
        allocated_bytes: int,
        collected: int,
    ) -> None:
        """A look at the end of a step; the numbers are as in :meth:`saw`."""
        self._collected = collected
        self.blocks.add(segments)
        self.steps.append(step)
        self.live_bytes.append(allocated_bytes)

    def may_have_fallen(self, collected: int) -> bool:
        """Whether Python's collector has freed something since a look, or since this was asked.

        Args:
            collected: objects that it has freed so far.
        """
        before, self._checked = self._checked, collected
        return self.count > 0 and collected > max(before, self._collected)

    def saw(self, allocated_bytes: int, collected: int) -> bool:
        """The end of any step; whether memory fell so that all begins anew.

        What a collection has freed is not there any more to be looked at, and what is live after it
        cannot be compared with what was before.

        Args:
            allocated_bytes: what is allocated.
            collected: objects that Python's collector has freed so far.
        """
        live = self.live_bytes[self._first :]
        if not live or collected <= self._collected:
            return False
        if allocated_bytes >= live[-1] - _FALLEN * max(1, live[-1] - live[0]):
            return False
        self._collected = collected
        self._first = self.blocks.looks
        self.falls += 1
        return True

    def compared(self) -> list[int]:
        """Numbers of those that are compared."""
        return [self._first + number for number in spread(self.count, self._wanted)]

    def groups(self) -> list[Group]:
        """What grows."""
        looks = self.compared()
        return growing_groups(self.blocks, looks) if len(looks) >= LEAST_LOOKS else []

    def show_growth(self) -> bool:
        """Whether growing groups explain what memory grew by."""
        # Of memory that falls now and then, as few as will do: they must come before the next fall.
        if self.count < (LEAST_LOOKS if self.falls else self._wanted):
            return False
        live = [self.live_bytes[look] for look in self.compared()]
        found = sum(rise(group.bytes_at_looks) for group in self.groups())
        return found > 0 and found >= _EXPLAINED * rise(live)

    def births(self) -> dict[int, int]:
        """When the block at each address came: 0 and less is before the first compared look."""
        return {address: block.born - self._first for address, block in self.blocks.blocks.items()}


def collected_objects() -> int:
    """Objects that Python's collector has freed so far."""
    return sum(int(age["collected"]) for age in gc.get_stats())
