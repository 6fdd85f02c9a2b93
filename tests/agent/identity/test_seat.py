from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vramscope.identity.seat import claim_seat, is_seat_claimed


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "vramscope"


def test_a_child_tells_its_parent_once_that_it_is_rank_0(runtime_folder: Path) -> None:
    assert not is_seat_claimed()
    code = "import os; from vramscope.identity.seat import *; claim_seat(os.getppid())"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert is_seat_claimed()
    assert not is_seat_claimed()
    assert list(runtime_folder.iterdir()) == []


def test_it_is_looked_for_in_the_folder_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_seat_claimed()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "other"))
    (tmp_path / "other").mkdir()
    assert not is_seat_claimed()
    claim_seat(os.getpid())
    assert is_seat_claimed()


def test_the_seat_of_another_process_is_not_ours() -> None:
    claim_seat(os.getppid())
    assert not is_seat_claimed()


def test_what_nobody_took_away_goes_with_a_later_claim(runtime_folder: Path) -> None:
    claim_seat(os.getppid())
    (abandoned,) = runtime_folder.iterdir()
    long_ago_s = time.time() - 7200
    os.utime(abandoned, (long_ago_s, long_ago_s))
    claim_seat(os.getpid())
    claim_seat(os.getpid())
    (left,) = runtime_folder.iterdir()
    assert left != abandoned
    assert is_seat_claimed()


def test_a_folder_of_others_is_not_written_to(runtime_folder: Path) -> None:
    runtime_folder.mkdir(mode=0o777)
    runtime_folder.chmod(0o777)
    with pytest.raises(PermissionError):
        claim_seat(os.getpid())
