"""What a function of the job has returned, as data that a receipt can hold."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any, Final

from vramscope_protocol.integers import MAX_INT64

MAX_CHARACTERS: Final = 16_384
"""Of a whole answer. The agent remembers its last receipts."""

_MAX_DEPTH: Final = 8
_MAX_SHOWN: Final = 2000
_OF_AN_ITEM: Final = 8
"""Characters that each item counts for beside its text."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _MAX_SHOWN
_repr.maxlist = _repr.maxtuple = _repr.maxdict = 50


class _NotPlain(Exception):
    """Not numbers, texts, lists and tables of them; or too much of it."""


def plain_answer(value: Any) -> tuple[Any, bool]:
    """The answer as plain data, or in Python's words for it, cut.

    Returns:
        What to tell, and whether it is the answer itself.
    """
    try:
        return _Reader().read(value, 0), True
    except _NotPlain:
        return _in_words(value), False


class _Reader:
    """Copies plain data, as long as there is room."""

    def __init__(self) -> None:
        self._left = MAX_CHARACTERS

    def read(self, value: Any, depth: int) -> Any:
        self._take(_OF_AN_ITEM)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if abs(value) <= MAX_INT64 else self._text(str(value))
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if isinstance(value, str):
            return self._text(value)
        if depth >= _MAX_DEPTH:
            raise _NotPlain
        if isinstance(value, Mapping):
            return {
                self._key(key): self.read(each, depth + 1)
                for key, each in value.items()  # pyright: ignore[reportUnknownVariableType]  # of the job
            }
        if isinstance(value, (list, tuple)):
            return [self.read(each, depth + 1) for each in value]  # pyright: ignore[reportUnknownVariableType]  # of the job
        number = _number(value)
        if number is None:
            raise _NotPlain
        return self.read(number, _MAX_DEPTH)

    def _key(self, key: Any) -> str:
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise _NotPlain
        return self._text(str(key))

    def _text(self, text: str) -> str:
        self._take(len(text))
        # What no encoding has a place for would keep the receipt from being sent.
        return text.encode("utf-8", "backslashreplace").decode()

    def _take(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise _NotPlain


def _number(value: Any) -> Any:
    """A number of numpy's as Python's own."""
    if type(value).__module__ != "numpy" or getattr(value, "shape", None) != ():
        return None
    number = value.item()
    return number if isinstance(number, (bool, int, float, str)) else None


def _in_words(value: Any) -> str:
    if all(hasattr(value, name) for name in ("shape", "dtype", "device")):
        # To show the values of a tensor would wait for its device.
        shape = ", ".join(map(str, value.shape))
        return f"{type(value).__name__} of shape [{shape}], {value.dtype}, on {value.device}"
    text = _repr.repr(value)
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
    return shown.encode("utf-8", "backslashreplace").decode()
