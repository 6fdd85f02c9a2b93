"""A thread writes, and whoever waits learns how it ended."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.support.history_rig import made_snapshot
from vramscope.collectors.self_cost import SelfCost
from vramscope.history.pickle_file import PickleFile
from vramscope.history.writing import THREAD_NAME, Writing


def writing(path: Path, max_bytes: int, written: list[PickleFile]) -> Writing:
    return Writing(
        made_snapshot(20_000),
        lambda: (str(path), max_bytes),
        written.append,
        SelfCost(lambda: 0),
    )


def test_it_tells_of_the_file_before_it_is_over(tmp_path: Path) -> None:
    written: list[PickleFile] = []
    each = writing(tmp_path / "a", 1 << 30, written)
    was_over = each.is_over
    each.start()
    assert each.wait(30)
    assert (was_over, each.is_over) == (False, True)
    assert written == [each.file]
    assert each.error == ""


def test_what_goes_wrong_is_kept_in_words(tmp_path: Path) -> None:
    written: list[PickleFile] = []
    each = writing(tmp_path / "no folder" / "a", 1 << 30, written)
    each.start()
    assert each.wait(30)
    assert each.is_over
    assert each.error.startswith("FileNotFoundError")
    assert (each.file, written) == (None, [])


def test_a_bound_is_told_without_the_name_of_an_exception(tmp_path: Path) -> None:
    each = writing(tmp_path / "a", 10, [])
    each.start()
    assert each.wait(30)
    assert each.error.startswith("it takes more than")


def test_cancelled_it_leaves_no_file(tmp_path: Path) -> None:
    gate = threading.Event()

    def find_path() -> tuple[str, int]:
        assert gate.wait(30)
        return str(tmp_path / "a"), 1 << 30

    each = Writing(made_snapshot(30_000), find_path, lambda file: None, SelfCost(lambda: 0))
    each.start()
    assert THREAD_NAME in {thread.name for thread in threading.enumerate()}
    assert not each.wait(0)
    each.cancel()
    gate.set()
    assert each.wait(30)
    assert "the process ended" in each.error
    assert list(tmp_path.iterdir()) == []
