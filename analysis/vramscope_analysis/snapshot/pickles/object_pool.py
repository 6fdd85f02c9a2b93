"""The objects that a pickle builds, numbered, and its memo, which holds their numbers."""

from __future__ import annotations

from array import array
from typing import Any

# What a memo index can stand for besides the number of an object: nothing yet, a dict of a run,
# and whatever a run has put there that is not settled yet.
UNWRITTEN = -1
IN_A_RUN = -2
UNSETTLED = -3


class ObjectPool:
    """Objects by number, equal texts and pairs once each; and the memo: index -> number.

    One number an index, four bytes, whatever it stands for: large pickles have a memo of tens of
    millions of entries.
    """

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.memo = array("i")
        self._texts: dict[bytes, int | None] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self._constants: dict[bool | None, int] = {}

    def add(self, value: Any) -> int:
        """Give an object a number."""
        self.objects.append(value)
        return len(self.objects) - 1

    def text(self, raw: bytes) -> int | None:
        """The number of a text by its UTF-8 bytes; None if they are none."""
        if raw not in self._texts:
            self._texts[raw] = self._add_text(raw)
        return self._texts[raw]

    def _add_text(self, raw: bytes) -> int | None:
        try:
            return self.add(raw.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            return None

    def pair(self, first: int, second: int) -> int:
        """The number of a tuple of two integers."""
        pair = (first, second)
        if pair not in self._pairs:
            self._pairs[pair] = self.add(pair)
        return self._pairs[pair]

    def constant(self, value: bool | None) -> int:
        """The number of None, True or False."""
        if value not in self._constants:
            self._constants[value] = self.add(value)
        return self._constants[value]
