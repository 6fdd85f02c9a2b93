"""Commands while a loader gives no batch, or the interpreter ends: they come later, or never.

On a GPU with all moments, also within a capture: ``tests/gpu/test_commands_at_bad_moments.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bad_moments import BadMoment

pytestmark = pytest.mark.torch
pytest.importorskip("torch")


@pytest.mark.parametrize("moment", ["stall", "exit"])
def test_commands_come_later_and_change_no_loss(tmp_path: Path, moment: str) -> None:
    BadMoment(moment, "cpu", tmp_path).check_harmless()


def test_sizes_are_changed_later_and_no_sample_is_lost(tmp_path: Path) -> None:
    BadMoment("stall", "cpu", tmp_path).check_sizes()


def test_training_is_stopped_later(tmp_path: Path) -> None:
    BadMoment("evaluation", "cpu", tmp_path).check_stop()
