"""More columns of a step row, from whoever has something to tell at the end of each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class StepColumns(Protocol):
    """Columns of integers."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the series; always the same."""
        ...

    def take(self) -> Sequence[int]:
        """Their values, ``UNKNOWN`` where not known; at a step boundary, on the training thread."""
        ...
