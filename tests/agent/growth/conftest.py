"""Jobs that grow on a device within the process of the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.growth_rig import GrowthRig, without_waiting


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GrowthRig]:
    without_waiting(monkeypatch)
    rig = GrowthRig(tmp_path)
    yield rig
    assert rig.history is None or rig.history.window is None  # nothing is recorded any more
