"""Files of processes that end, hide, or set traps."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from vramscope.processes.proc_files import (
    NoSuchProcess,
    process_ids,
    read_proc,
    read_proc_link,
    read_program_file,
    read_thread_names,
)


@pytest.fixture
def ended() -> int:
    """A process that is no more."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_this_process_is_among_all() -> None:
    assert os.getpid() in process_ids()
    assert process_ids() == sorted(process_ids())


def test_what_has_ended_is_told_from_what_is_not_there(ended: int) -> None:
    assert read_proc(os.getpid(), "no-such-file") is None
    assert read_proc_link(os.getpid(), "no-such-link") is None
    for read in (lambda: read_proc(ended, "maps"), lambda: read_proc_link(ended, "exe")):
        with pytest.raises(NoSuchProcess, match=str(ended)):
            read()
    with pytest.raises(NoSuchProcess):
        read_thread_names(ended)


def test_threads_have_names_of_their_own() -> None:
    started, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with open("/proc/thread-self/comm", "w", encoding="ascii") as name:
            name.write("named")
        started.set()
        may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    try:
        names = read_thread_names(os.getpid())
    finally:
        may_end.set()
        thread.join()
    assert names[thread.native_id or 0] == "named"
    assert names[os.getpid()] != "named"


def test_a_file_of_the_program_is_read(tmp_path: Path) -> None:
    (tmp_path / "version.py").write_text("content")
    (tmp_path / "link.py").symlink_to("version.py")
    path = str(tmp_path / "version.py")
    link = str(tmp_path / "link.py")
    assert read_program_file(os.getpid(), path, same_root=True) == b"content"
    assert read_program_file(os.getpid(), link, same_root=True) == b"content"
    assert read_program_file(os.getpid(), f"{path}.none", same_root=True) is None


def test_a_link_out_of_another_root_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "version.py").symlink_to(tmp_path / "outside")
    path = str(tmp_path / "version.py")
    assert read_program_file(os.getpid(), path, same_root=False) is None


def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "version.py")
    path = str(tmp_path / "version.py")
    assert read_program_file(os.getpid(), path, same_root=True) is None
    assert read_program_file(os.getpid(), "/dev/zero", same_root=True) is None
