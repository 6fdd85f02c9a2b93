"""A place in the bytes of a pickle."""

from __future__ import annotations

from vramscope_analysis.snapshot.errors import SnapshotError
from vramscope_analysis.snapshot.pickles.source import Data


class Cursor:
    """Goes through bytes from the first to the last; ``position`` is the next one."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.size = len(data)
        self.position = 0

    def take(self, count: int) -> bytes:
        """The next bytes, so many; SnapshotError if there are not."""
        start = self.position
        if count > self.size - start:
            raise self.truncated()
        self.position = start + count
        return bytes(self.data[start : start + count])

    def take_byte(self) -> int:
        """The next byte; IndexError if there is none."""
        byte = self.data[self.position]
        self.position += 1
        return byte

    def take_length(self, count: int) -> int:
        """The number that so many bytes are, without a sign."""
        return int.from_bytes(self.take(count), "little")

    def truncated(self) -> SnapshotError:
        """The refusal of a pickle that ends too early."""
        return SnapshotError(
            f"the pickle is truncated: it ends at byte {self.size:,} in the middle of its data; "
            "copy the file again"
        )

    def damaged(self, what: str) -> SnapshotError:
        """The refusal of a pickle in which something is wrong at this place."""
        return SnapshotError(f"byte {self.position:,}: {what}: the pickle is damaged")
