"""Numbers that the user logs beside the steps: ``vramscope.log(loss=...)``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from vramscope.notices import Notices
from vramscope_protocol.codec import MAX_TABLES
from vramscope_protocol.messages import Field

MAX_KEYS: Final = MAX_TABLES - 16
"""Different names at most; values of further names are dropped, with a note. Each may come as a
field table of its own, and there are others."""

_MAX_NAME: Final = 100

PREFIX: Final = "user."


class UserValues:
    """The latest value of each name since the last step row."""

    def __init__(self, notices: Notices) -> None:
        self._notices = notices
        self._values: dict[str, float] = {}
        self.fields: tuple[Field, ...] = ()

    def log(self, values: Mapping[str, Any]) -> None:
        """Keep values for the next step row."""
        for name, value in values.items():
            if name not in self._values and not self._add(name):
                continue
            self._values[name] = self._number(name, value)

    def take(self) -> list[float]:
        """The values of one row, in the order of :attr:`fields`; NaN for what was not logged."""
        row = [self._values[field.name[len(PREFIX) :]] for field in self.fields]
        self._values = dict.fromkeys(self._values, math.nan)
        return row

    def _add(self, name: str) -> bool:
        if not (0 < len(name) <= _MAX_NAME and name.isprintable()):
            self._notices.note(
                "log_names", f"log(): expected names of 1 to {_MAX_NAME} printable characters"
            )
            return False
        if len(self.fields) >= MAX_KEYS:
            self._notices.note("log_keys", f"log(): only the first {MAX_KEYS} names are kept")
            return False
        self._values[name] = math.nan
        self.fields = (*self.fields, Field(PREFIX + name, "d"))
        return True

    def _number(self, name: str, value: Any) -> float:
        if getattr(value, "is_cuda", False):
            # float() of it would wait for the device, in the middle of the user's step.
            self._notices.note("log_cuda", f"log({name}=...): pass a number, not a CUDA tensor")
            return math.nan
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            self._notices.note("log_type", f"log({name}=...): expected a number")
            return math.nan
