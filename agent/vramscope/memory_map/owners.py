"""What the map asks of whoever knows which tensor lies where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias


class Owners(Protocol):
    """Owners of memory as they were at one step end. Never changed."""

    @property
    def step(self) -> int:
        """Optimizer steps finished then."""
        ...

    def category_of(self, address: int) -> tuple[int, str]:
        """Code of the category and name of what lies at an address; ``(0, "")`` for the rest."""
        ...


OwnersSource: TypeAlias = Callable[[], "Owners | None"]
"""The newest owners, ``None`` before the first; asking is also the wish for newer ones."""


def no_owners() -> Owners | None:
    """Where nobody knows the owners."""
    return None
