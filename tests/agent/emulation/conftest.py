"""A started emulation, taken down at the end of the test whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vramscope.emulation import Emulation

GIB = 1 << 30


@pytest.fixture
def emulate() -> Iterator[Callable[..., Emulation]]:
    """Starts an emulation of ``capacity_bytes`` (8 GiB) on this thread."""
    from vramscope.emulation import start_emulation

    started: list[Emulation] = []

    def start(capacity_bytes: int = 8 * GIB, **options: Any) -> Emulation:
        started.append(start_emulation(capacity_bytes, **options))
        return started[-1]

    yield start
    for emulation in reversed(started):
        emulation.stop()
        # A mode of the test's own may have been on top of it then: off for the tests that follow.
        emulation.__dict__["_mode"].leave()
