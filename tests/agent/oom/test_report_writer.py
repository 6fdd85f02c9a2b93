from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from vramscope.oom.report_folder import ReportFile, ReportFolder
from vramscope.oom.report_writer import THREAD_NAME, ReportWriter, Writing


class Told:
    """Who is told of files."""

    def __init__(self) -> None:
        self.files: list[ReportFile] = []
        self.errors: list[Exception] = []
        self.threads: list[str] = []

    def __call__(self, file: ReportFile | None, error: Exception | None) -> None:
        self.threads.append(threading.current_thread().name)
        if file is not None:
            self.files.append(file)
            file.let_go()
        if error is not None:
            self.errors.append(error)


@pytest.fixture
def told() -> Told:
    return Told()


def writing(told: Any, name: str = "oom-1-0.json", data: bytes = b"{}") -> Writing:
    return Writing(name, data, sync=True, told=told)


def test_files_are_written_in_order_on_a_thread_of_its_own(tmp_path: Path, told: Told) -> None:
    writer = ReportWriter(ReportFolder(str(tmp_path / "spool")))
    first, second = writing(told, data=b"first"), writing(told, data=b"second")
    writer.write(first)
    writer.write(second)
    assert second.wait(10)
    assert first.wait(0)
    assert told.threads == [THREAD_NAME] * 2
    assert Path(told.files[1].path).read_bytes() == b"second"
    writer.close(10)
    writer.write(writing(told, data=b"at the end"))
    assert told.threads[2] == threading.current_thread().name


def test_a_disk_that_hangs_holds_nobody_for_longer_than_they_wait(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    fsync = os.fsync

    def hang(descriptor: int) -> None:
        go_on.wait(60)
        fsync(descriptor)

    monkeypatch.setattr("vramscope.oom.report_folder.os.fsync", hang)
    writer = ReportWriter(ReportFolder(str(tmp_path / "spool")))
    hanging = writing(told)
    writer.write(hanging)
    assert not hanging.wait(0.05)
    go_on.set()
    assert hanging.wait(10)
    writer.close(10)


def test_a_full_disk_is_told(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vramscope.oom.report_folder.os.write", full)
    writer = ReportWriter(ReportFolder(str(tmp_path / "spool")))
    writer.write(written := writing(told))
    assert written.wait(10)
    assert told.files == []
    assert "No space left" in str(told.errors[0])
    writer.close(10)


def test_where_no_thread_can_be_started_it_is_written_here(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    writer = ReportWriter(ReportFolder(str(tmp_path / "spool")))
    writer.write(written := writing(told))
    assert written.wait(0)
    assert told.threads == [threading.current_thread().name]
    writer.close(0)


@pytest.mark.expects_guarded_errors
def test_who_is_told_and_fails_ends_nothing(tmp_path: Path, told: Told) -> None:
    def fail(file: ReportFile | None, error: Exception | None) -> None:
        raise ValueError("ours")

    writer = ReportWriter(ReportFolder(str(tmp_path / "spool")))
    writer.write(failing := writing(fail))
    writer.write(following := writing(told, "oom-2-0.json"))
    assert following.wait(10)
    assert failing.wait(0)
    writer.close(10)


def test_in_a_forked_child_nothing_of_it_is_left(tmp_path: Path, told: Told) -> None:
    folder = ReportFolder(str(tmp_path / "spool"))
    writer = ReportWriter(folder)
    writer.write(first := writing(told))
    assert first.wait(10)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        writer.forget_after_fork()
        writer.close(10)
        os.write(write, b"ended")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"ended"
    os.close(read)
    os.close(write)
    writer.write(second := writing(told))
    assert second.wait(10)
    writer.close(10)
