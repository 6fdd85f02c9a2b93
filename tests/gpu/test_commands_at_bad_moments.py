"""On a real GPU: commands at moments at which they must not run, so they come later or never."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.support.bad_moments import BadMoment

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

MOMENTS = ("capture", "compile", "evaluation", "stall", "exit")


def bad_moment(name: str, folder: Path) -> BadMoment:
    if name == "compile":
        if importlib.util.find_spec("triton") is None:
            pytest.skip("no triton")
        if not any(map(shutil.which, ("cc", "gcc", "clang"))):
            pytest.skip("no compiler")
    return BadMoment(name, "cuda", folder)


@pytest.mark.parametrize("moment", MOMENTS)
def test_commands_come_later_and_change_no_loss(tmp_path: Path, moment: str) -> None:
    bad_moment(moment, tmp_path).check_harmless()


@pytest.mark.parametrize("moment", MOMENTS)
def test_sizes_are_changed_later_and_no_sample_is_lost(tmp_path: Path, moment: str) -> None:
    bad_moment(moment, tmp_path).check_sizes()


@pytest.mark.parametrize("moment", MOMENTS)
def test_training_is_stopped_later(tmp_path: Path, moment: str) -> None:
    bad_moment(moment, tmp_path).check_stop()
