from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vramscope.oom import left_reports
from vramscope.oom.left_reports import ship_left
from vramscope.oom.report import FORMAT
from vramscope.oom.report_folder import ReportFile, ReportFolder, file_name
from vramscope_protocol.messages import OomBegin

REPORT = {"format": FORMAT, "id": "r1", "run": "run1", "rank": 3, "time_ns": 12, "step": 7}


class Shipped:
    """Takes what is delivered."""

    def __init__(self) -> None:
        self.begins: list[OomBegin] = []
        self.files: list[ReportFile] = []

    def __call__(self, begin: OomBegin, file: ReportFile | None, data: bytes) -> None:
        assert file is not None
        assert data == b""
        self.begins.append(begin)
        self.files.append(file)


@pytest.fixture
def folder(tmp_path: Path) -> ReportFolder:
    return ReportFolder(str(tmp_path / "spool"))


def leave(folder: ReportFolder, content: Any, number: int = 12) -> Path:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    file = folder.write(file_name(number, 3), data, sync=False)
    file.let_go()
    return Path(file.path)


def test_what_a_killed_process_left_is_delivered_in_its_name(folder: ReportFolder) -> None:
    leave(folder, REPORT)
    shipped = Shipped()
    assert ship_left(folder, shipped) == 1
    (begin,) = shipped.begins
    assert (begin.id, begin.run, begin.rank, begin.step) == ("r1", "run1", 3, 7)
    assert begin.wire_bytes == shipped.files[0].size_bytes
    # It is ours now: another agent leaves it alone, until this one ends.
    assert ship_left(folder, Shipped()) == 0
    shipped.files[0].let_go()
    again = Shipped()
    assert ship_left(folder, again) == 1
    again.files[0].delete()


@pytest.mark.parametrize(
    "content",
    [b"{", b"[1]", b'{"format": "other"}', b"", b"\xff\xfe", b"[" * 100_000],
)
def test_what_is_no_report_goes(folder: ReportFolder, content: bytes) -> None:
    path = leave(folder, content)
    shipped = Shipped()
    assert ship_left(folder, shipped) == 0
    assert shipped.begins == []
    assert not path.exists()


def test_one_that_does_not_say_whose_it_is_is_left_alone(folder: ReportFolder) -> None:
    path = leave(folder, {"format": FORMAT, "id": "r1"})
    assert ship_left(folder, Shipped()) == 0
    assert path.exists()


@pytest.mark.parametrize("error", [OSError("no more descriptors"), MemoryError()])
def test_one_that_cannot_be_read_now_stays_for_the_next(
    folder: ReportFolder, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*arguments: object) -> object:
        raise error

    path = leave(folder, REPORT)
    monkeypatch.setattr(left_reports, "open", fail, raising=False)
    assert ship_left(folder, Shipped()) == 0
    monkeypatch.undo()
    assert path.exists()
    again = Shipped()
    assert ship_left(folder, again) == 1
    again.files[0].delete()


def test_so_many_at_once_and_no_more(folder: ReportFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_reports, "MAX_LEFT", 2)
    for number in range(5):
        leave(folder, {**REPORT, "time_ns": number}, number)
    shipped = Shipped()
    assert ship_left(folder, shipped) == 2
    assert [begin.time_ns for begin in shipped.begins] == [4, 3]
    for file in shipped.files:
        file.delete()
