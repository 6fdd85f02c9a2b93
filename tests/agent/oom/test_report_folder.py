from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from vramscope.oom import report_folder
from vramscope.oom.report_folder import ReportFolder, file_name
from vramscope.outbox.spool import remove_stale_spools


@pytest.fixture
def folder(tmp_path: Path) -> ReportFolder:
    return ReportFolder(str(tmp_path / "spool"))


def names(folder: ReportFolder) -> list[str]:
    return sorted(os.listdir(folder.path))


def test_a_report_is_whole_private_and_ours(folder: ReportFolder) -> None:
    file = folder.write(file_name(12, 3), b"{}", sync=True)
    assert names(folder) == ["oom-12-3.json"]
    assert os.stat(file.path).st_mode & 0o777 == 0o600
    assert os.stat(folder.path).st_mode & 0o777 == 0o700
    assert folder.claim_left() == []
    file.let_go()
    (found,) = folder.claim_left()
    assert Path(found.path).read_bytes() == b"{}"
    assert folder.claim_left() == []
    found.delete()
    assert names(folder) == []


def test_a_child_that_outlives_its_parent_holds_nothing_back(folder: ReportFolder) -> None:
    file = folder.write(file_name(12, 3), b"{}", sync=False)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(write)
        folder.forget_after_fork()
        os.read(read, 1)  # until the parent has looked
        os._exit(0)
    os.close(read)
    file.let_go()
    deadline_s = time.monotonic() + 10
    found = folder.claim_left()
    while not found and time.monotonic() < deadline_s:
        found = folder.claim_left()
    os.close(write)
    os.waitpid(child, 0)
    (left,) = found
    left.delete()
    left.delete()


def test_one_takes_the_place_of_another_and_stays_ours(folder: ReportFolder) -> None:
    first = folder.write(file_name(12, 0), b"first", sync=True)
    second = folder.write(file_name(12, 0), b"second", sync=True)
    first.let_go()
    assert folder.claim_left() == []
    assert Path(second.path).read_bytes() == b"second"
    second.let_go()


def test_a_full_disk_leaves_nothing(folder: ReportFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vramscope.oom.report_folder.os.write", full)
    with pytest.raises(OSError, match="No space"):
        folder.write(file_name(12, 0), b"{}", sync=True)
    assert names(folder) == []


def test_a_folder_that_others_can_read_is_not_used(folder: ReportFolder) -> None:
    os.makedirs(folder.path, mode=0o755)
    os.chmod(folder.path, 0o755)
    os.chmod(os.path.dirname(folder.path), 0o700)
    with pytest.raises(PermissionError):
        folder.write(file_name(12, 0), b"{}", sync=False)
    Path(folder.path, "oom-1-0.json").write_text("{}")
    assert folder.claim_left() == []


def test_the_oldest_go_beyond_the_bounds(
    folder: ReportFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_folder, "MAX_FILES", 3)
    for number in range(1, 6):
        folder.write(file_name(number, 0), b"x" * 10, sync=False).let_go()
    folder.tidy()
    assert names(folder) == ["oom-3-0.json", "oom-4-0.json", "oom-5-0.json"]
    monkeypatch.setattr(report_folder, "MAX_BYTES", 10)
    folder.tidy()
    assert names(folder) == ["oom-5-0.json"]


def test_what_is_too_old_or_was_half_written_goes(folder: ReportFolder) -> None:
    folder.write(file_name(1, 0), b"{}", sync=False).let_go()
    path = Path(folder.path, file_name(1, 0))
    part = Path(folder.path, "oom-2-0.json.77.part")
    part.write_text("{")
    os.utime(path, (1, 1))
    os.utime(part, (1, 1))
    assert folder.claim_left() == []
    folder.tidy()
    assert names(folder) == []


def test_it_is_taken_for_no_spool(folder: ReportFolder, tmp_path: Path) -> None:
    folder.write(file_name(1, 0), b"{}", sync=False).let_go()
    os.utime(folder.path, (1, 1))
    remove_stale_spools(str(tmp_path / "spool"))
    assert names(folder) == ["oom-1-0.json"]


def test_without_a_folder_there_is_nothing_left(folder: ReportFolder) -> None:
    folder.tidy()
    assert folder.claim_left() == []
