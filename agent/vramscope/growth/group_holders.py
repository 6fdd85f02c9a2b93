"""Finds the tensors that lie in growing blocks, and what holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from vramscope.growth.groups import Group
from vramscope.growth.samples import sample_addresses
from vramscope.holders.holder import HolderFound
from vramscope.holders.live_tensors import Storage, TensorClasses, looking, words_of
from vramscope.holders.reach import Reach
from vramscope.holders.search import holders_within


class Held(Struct):
    """What was found for one group."""

    tensors: list[str] = field(default_factory=list[str])
    holders: list[HolderFound] = field(default_factory=list[HolderFound])
    garbage_bytes: int = 0


class GroupHolders:
    """Looks for samples of all groups at once. On the training thread, at a boundary.

    Args:
        storage: finds a tensor's storage on the device.
        limit_s: how long to look.
    """

    def __init__(self, storage: Storage, limit_s: float) -> None:
        self._storage = storage
        self._limit_s = limit_s
        self.notes: list[str] = []
        self.objects = 0
        """How many objects were looked at."""

    def find(self, groups: Sequence[Group]) -> list[Held]:
        """What holds each group, in their order."""
        samples = [sample_addresses(group) for group in groups]
        group_of = {address: at for at, each in enumerate(samples) for address in each}
        classes = TensorClasses()

        def is_wanted(value: Any) -> bool:
            if not classes.is_plain(value):
                return False
            place = self._storage(value)
            return place is not None and place[0] in group_of

        reach = Reach(self._limit_s)
        try:
            with looking():
                reach.search(is_wanted)
                return [self._held(reach, each) for each in samples]
        finally:
            self.objects = len(reach.objects)
            if not reach.is_complete:
                self.notes.append(f"the search for holders ended after {self.objects:,} objects")
            reach.clear()

    def _held(self, reach: Reach, sample: dict[int, int]) -> Held:
        born: dict[int, int] = {}
        for number in reach.found:
            place = self._storage(reach.objects[number])
            if place is not None and place[0] in sample:
                born[number] = sample[place[0]]
        tensors = words_of(reach.objects[number] for number in born)
        return Held(tensors, holders_within(reach, born))
