"""What the driver lists of the processes on one device, and what PyTorch held at that moment."""

from __future__ import annotations

from typing import NamedTuple

from vramscope_protocol.columns import UNKNOWN


class ProcessListing(NamedTuple):
    """One answer of the driver.

    Args:
        own_bytes: what it counts to this process.
        reserved_bytes: what PyTorch held in this process then.
        processes: every process by pid, this one included; ``None`` where they cannot be seen, as
            in a container. Bytes are ``None`` where the driver does not tell.
    """

    own_bytes: int = UNKNOWN
    reserved_bytes: int = 0
    processes: tuple[tuple[int, int | None], ...] | None = None

    @property
    def outside_bytes(self) -> int:
        """What this process holds outside of PyTorch's allocator."""
        return UNKNOWN if self.own_bytes == UNKNOWN else self.own_bytes - self.reserved_bytes
