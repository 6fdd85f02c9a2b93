"""Names of the moments at which the one who reaches in may die; tests kill it at each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

AtStage = Callable[[str], None]

STAGES: Final = (
    "seized",
    "stopped",
    "framed",
    "masked",
    "before system call",
    "in system call",
    "after system call",
    "written",
    "calling",
    "running",
    "called",
    "returning",
    "home",
    "restored",
    "detached",
)
"""In the order in which an injection passes them; the three of the system call only in a process
that has no page for lines yet."""


def no_stage(name: str) -> None:
    """What happens at a stage outside of tests: nothing."""
