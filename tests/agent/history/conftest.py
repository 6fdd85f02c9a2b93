"""A history over a PyTorch that notes, and a started emulation, taken down in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.history_rig import HistoryRig

if TYPE_CHECKING:
    from vramscope.emulation import Emulation


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[HistoryRig]:
    rig = HistoryRig(tmp_path)
    yield rig
    rig.history.close(5.0)
    rig.history.remove_folder()


@pytest.fixture
def emulate() -> Iterator[Callable[..., Emulation]]:
    """Starts an emulation on this thread."""
    from vramscope.emulation import start_emulation

    started: list[Emulation] = []

    def start(capacity_bytes: int = 1 << 30, **options: Any) -> Emulation:
        started.append(start_emulation(capacity_bytes, **options))
        return started[-1]

    yield start
    for emulation in reversed(started):
        emulation.stop()
