"""The kinds of processor that are known, by name."""

from __future__ import annotations

from typing import Final

from vramscope.injection.aarch64 import Aarch64
from vramscope.injection.machine import Machine
from vramscope.injection.x86_64 import X8664

_MACHINES: Final[dict[str, Machine]] = {machine.name: machine for machine in (X8664(), Aarch64())}


def machine_named(name: str) -> Machine | None:
    """A processor by its ``uname -m``, None if nothing is known of it."""
    return _MACHINES.get(name)
