"""Whose memory an address is: a snapshot of the storages that have an owner."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from vramscope.tensors.category import NONE

MAX_NAME: Final = 200


class Owned(NamedTuple):
    """One storage with its owner."""

    address: int
    size_bytes: int
    code: int
    name: str


class Owners:
    """Storages of parameters, gradients, optimizer state and buffers, by address.

    It holds numbers and names, and no tensor. It never changes: any thread may read it.

    Args:
        owned: the storages.
        step: steps finished when they were looked at.
        time_ns: when.
    """

    def __init__(self, owned: Iterable[Owned], step: int, time_ns: int) -> None:
        ordered = sorted(owned)
        self.step = step
        self.time_ns = time_ns
        self.addresses = array("q", (each.address for each in ordered))
        self.ends = array("q", (each.address + each.size_bytes for each in ordered))
        self.codes = bytes(each.code for each in ordered)
        self.names = [each.name[:MAX_NAME] for each in ordered]

    def __len__(self) -> int:
        return len(self.addresses)

    def category_of(self, address: int) -> tuple[int, str]:
        """Category and owner of the storage that an address lies in; ``(0, "")`` if in none."""
        position = bisect_right(self.addresses, address) - 1
        if position < 0 or address >= self.ends[position]:
            return NONE, ""
        return self.codes[position], self.names[position]
