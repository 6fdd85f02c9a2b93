"""All cases that are scripts."""

from __future__ import annotations

import os
from typing import Final

from tests.cases import fragments, harmless, leaks

CASES: Final = (*leaks.CASES, *fragments.CASES, *harmless.CASES)

ALWAYS: Final = frozenset(
    (
        *("C11", "C28", "C33", "C33-culprit", "C41", "C50", "C54", "C55", "C58", "C59", "C61"),
        *("C72", "warm_cache"),
    )
)
"""What every run of the tests runs: all jobs together take twelve minutes of two processors."""


def runs_now(name: str) -> bool:
    """Whether a job is run: with the others only where verdicts are counted."""
    return name in ALWAYS or "VRAMSCOPE_TEST_VERDICTS" in os.environ
