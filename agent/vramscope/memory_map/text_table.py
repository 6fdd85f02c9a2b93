"""Texts that travel once and are numbers from then on. Pure."""

from __future__ import annotations

from typing import Final

MAX_TEXTS: Final = 4096
MAX_TEXT_LENGTH: Final = 2000
MAX_NEW_LENGTH: Final = 64 * 1024
"""Characters of new texts in one frame; what does not fit goes into a later one."""
NO_TEXT: Final = -1


class TextTable:
    """Numbers of the texts that one connection was told."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._new: list[str] = []
        self._room = MAX_NEW_LENGTH

    @property
    def is_full(self) -> bool:
        """Whether further texts go untold."""
        return len(self._numbers) >= MAX_TEXTS

    def number(self, text: str) -> int | None:
        """The number of a text; ``None`` if it has to wait for the next frame."""
        if not text:
            return NO_TEXT
        text = text[:MAX_TEXT_LENGTH]
        known = self._numbers.get(text)
        if known is not None:
            return known
        if self.is_full:
            return NO_TEXT
        if len(text) > self._room:
            return None
        self._room -= len(text)
        self._new.append(text)
        number = self._numbers[text] = len(self._numbers)
        return number

    def take_new(self) -> tuple[int, list[str]]:
        """Number of the first text that was not told yet, and these texts."""
        new, self._new = self._new, []
        self._room = MAX_NEW_LENGTH
        return len(self._numbers) - len(new), new
