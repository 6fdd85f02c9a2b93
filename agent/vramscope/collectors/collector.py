"""What adds columns of its own to every sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Collector(Protocol):
    """Reads something once a sample, on the sampler thread; makes no CUDA call.

    A reading that costs more than a microsecond is not taken at every sample: the last one is
    repeated until the next is due.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Series of the last reading, in its order. The same object as long as it is the same."""
        ...

    def read(self) -> Sequence[int]:
        """One value for each name; what is not known is ``UNKNOWN``."""
        ...
