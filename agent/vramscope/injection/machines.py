"""The kinds of processor that are known, by name."""

from __future__ import annotations

from typing import Final

from vramscope.injection.machine import Machine
from vramscope.injection.x86_64 import X8664

_MACHINES: Final[dict[str, Machine]] = {"x86_64": X8664()}


def machine_named(name: str) -> Machine | None:
    """A processor by its ``uname -m``, None if nothing is known of it."""
    return _MACHINES.get(name)
