"""Where the device places segments. The driver decides that, not the allocator."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, Protocol

BASE_ADDRESS: Final = 0x7F00_0000_0000
"""First address of the default address space: any would do, this one looks like a device's."""


class AddressSpace(Protocol):
    """Hands out addresses for segments.

    Blocks of equal size are chosen by address, so the placement of segments is part of the
    result: a replay passes the recorded addresses in, in their recorded order.
    """

    def reserve(self, size_bytes: int) -> int:
        """Address of a new segment (``cudaMalloc``)."""
        ...

    def release(self, address: int, size_bytes: int) -> None:
        """The segment is gone; its range may be handed out again (``cudaFree``)."""
        ...

    def reserve_range(self, size_bytes: int) -> int:
        """Address of the range of a new expandable segment (``cuMemAddressReserve``)."""
        ...

    def release_range(self, address: int, size_bytes: int) -> None:
        """The range of an expandable segment is given up (``cuMemAddressFree``)."""
        ...


class FirstFitAddresses:
    """Lowest range that is large enough, unbounded upwards. Deterministic."""

    def __init__(self, base_address: int = BASE_ADDRESS) -> None:
        self._end = base_address
        self._holes: list[tuple[int, int]] = []  # (address, size), by address, never adjacent

    def reserve(self, size_bytes: int) -> int:
        """Address of a new segment."""
        for position, (address, hole_bytes) in enumerate(self._holes):
            if hole_bytes == size_bytes:
                del self._holes[position]
                return address
            if hole_bytes > size_bytes:
                self._holes[position] = (address + size_bytes, hole_bytes - size_bytes)
                return address
        address = self._end
        self._end += size_bytes
        return address

    def release(self, address: int, size_bytes: int) -> None:
        """Give a range back and join it with its neighbours."""
        position = bisect_left(self._holes, (address, 0))
        if position < len(self._holes) and self._holes[position][0] == address + size_bytes:
            size_bytes += self._holes.pop(position)[1]
        if position:
            before, before_bytes = self._holes[position - 1]
            if before + before_bytes == address:
                position -= 1
                del self._holes[position]
                address, size_bytes = before, before_bytes + size_bytes
        if address + size_bytes == self._end:
            self._end = address
        else:
            self._holes.insert(position, (address, size_bytes))

    def occupy(self, address: int, size_bytes: int) -> None:
        """Hand a range out that lies where it lies, as far as it is not in use."""
        end = address + size_bytes
        first = bisect_left(self._holes, (address, 0))
        if first and sum(self._holes[first - 1]) > address:
            first -= 1
        behind = bisect_left(self._holes, (end, 0))
        kept: list[tuple[int, int]] = []
        for hole, hole_bytes in self._holes[first:behind]:
            if hole < address:
                kept.append((hole, address - hole))
            if hole + hole_bytes > end:
                kept.append((end, hole + hole_bytes - end))
        self._holes[first:behind] = kept
        if end > self._end:
            if address > self._end:
                self._holes.append((self._end, address - self._end))
            self._end = end

    def reserve_range(self, size_bytes: int) -> int:
        """Address of a new range: ranges and segments lie in one space."""
        return self.reserve(size_bytes)

    def release_range(self, address: int, size_bytes: int) -> None:
        """Give the range of an expandable segment back."""
        self.release(address, size_bytes)
