"""A list that is read now and then for somebody else, kept for whoever cannot wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LastTold(Generic[T]):
    """Passes a reading on, and keeps it.

    Args:
        read: reads; on one thread.
    """

    def __init__(self, read: Callable[[], list[T]]) -> None:
        self._read = read
        self.value: list[T] = []
        """What was read last."""

    def __call__(self) -> list[T]:
        """Read now."""
        self.value = self._read()
        return self.value
