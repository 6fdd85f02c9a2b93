"""Small files are read whole, and what cannot be read is None."""

from __future__ import annotations

from pathlib import Path

from vramscope.collectors.proc_text import ProcText
from vramscope.collectors.self_cost import ReleasedTime


def test_text_and_number(tmp_path: Path) -> None:
    file = tmp_path / "memory.max"
    files = ProcText()
    file.write_text("1024\n")
    assert files.read(str(file)) == b"1024\n"
    assert files.read_number(str(file)) == 1024
    file.write_text("max\n")
    assert files.read_number(str(file)) is None


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    files = ProcText()
    assert files.read(str(tmp_path / "none")) is None
    assert files.read(str(tmp_path)) is None
    assert files.read_number(str(tmp_path / "none")) is None


def test_the_time_of_a_read_is_counted_where_the_gil_was_given_away(tmp_path: Path) -> None:
    released = ReleasedTime()
    ProcText(released).read(str(tmp_path))
    assert released.ns == 0  # not the thread that is followed
    released.follow_this_thread()
    ProcText(released).read(str(tmp_path))
    assert released.ns > 0
