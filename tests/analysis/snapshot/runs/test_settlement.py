"""What runs put into the memo and fetch from it, seen through whole pickles."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from vramscope_analysis.snapshot import Limits, SnapshotError
from vramscope_analysis.snapshot.pickles.machine import Machine
from vramscope_analysis.snapshot.runs import run_reader
from vramscope_analysis.snapshot.runs.run import Run, RunBlock, expand
from vramscope_analysis.snapshot.runs.settlement import Stretch


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_reader, "LEAST_ROWS", 1)


def entry(at: int, **more: Any) -> dict[str, Any]:
    return {"action": "alloc", "addr": at, "size": 1, **more}


def read(plain: Any) -> Any:
    return read_pickle(pickle.dumps(plain, 4))


def read_pickle(data: bytes) -> Any:
    got = Machine(data, Limits()).run()
    assert any(type(item) is Run for item in got)
    expand(got)
    return got


FRAMES = [{"name": "f", "line": at} for at in range(4)]


def test_stacks_are_built_once_for_equal_bytes() -> None:
    plain = [entry(at, frames=[FRAMES[at % 2], FRAMES[at % 3]]) for at in range(60)]
    got = read([FRAMES, *plain])

    assert got[1:] == plain
    assert len({id(row["frames"]) for row in got[20:]}) < 10
    assert got[20]["frames"][0] is got[0][1]


def test_a_stack_is_fetched_from_the_row_before() -> None:
    plain: list[dict[str, Any]] = []
    for at in range(40):
        frames = [FRAMES[at % 4]]
        plain += [entry(at, frames=frames), entry(at, frames=frames)]
    got = read([FRAMES, *plain])

    assert got[1:] == plain
    assert got[60]["frames"] == got[59]["frames"]


def test_texts_and_pairs_are_fetched_from_the_row_before() -> None:
    plain: list[dict[str, Any]] = []
    for at in range(40):
        text, pair = f"text {at}", (at, at)
        plain += [entry(at, meta=text, pool=pair, same=text), entry(at, meta=text, pool=(0, 0))]
        plain[-1]["other"] = pair
    assert read(plain) == plain


def test_rows_are_fetched_by_rows_behind_them() -> None:
    plain: list[dict[str, Any]] = [entry(0, before=None)]
    for at in range(1, 60):
        before = plain[-1] if at % 2 else None
        plain.append(entry(at, before=before))
    got = read(plain)

    assert got == plain
    assert got[31]["before"] == plain[30]


def test_what_a_run_memoizes_is_fetched_behind_it() -> None:
    plain: list[Any] = [
        entry(at, meta=f"m{at}", pool=(at, 1), frames=[FRAMES[0]]) for at in range(50)
    ]
    tail = [plain[30], plain[31]["meta"], plain[32]["pool"], plain[33]["frames"]]
    got = read([FRAMES, *plain, *tail])
    assert got[-4:] == tail


def test_runs_of_two_kinds_fetch_from_each_other() -> None:
    states = [f"state {at}" for at in range(40)]
    blocks = [{"size": at, "state": states[at]} for at in range(40)]
    rows = [entry(at, meta=states[at]) for at in range(40)]
    mixed = [*blocks[:20], *rows[:20], *blocks[20:], *rows[20:]]
    assert read(mixed) == mixed


def opcodes(plain: list[Any]) -> bytes:
    return pickle.dumps(plain, 4)


@pytest.mark.parametrize("index", [100, 250])
def test_what_is_fetched_too_early_is_refused(index: int) -> None:
    plain = [entry(at, meta="one") for at in range(60)]
    data = bytearray(opcodes(plain))
    # The text of the last entry, fetched from an index that is not written yet.
    assert data[-5:-4] == b"h"
    data[-4] = index
    with pytest.raises(SnapshotError, match="read before it is written"):
        Machine(bytes(data), Limits()).run()


def test_rows_of_a_stretch_are_found_by_their_objects() -> None:
    alike = Stretch(RunBlock(), 10, 3)
    assert [alike.row(at) for at in (0, 3, 9)] == [10, 11, 13]
    # Rows that put two objects, none, and one into the memo.
    uneven = Stretch(RunBlock(), 10, np.array([2, 2, 3], np.int32))
    assert [uneven.row(0), uneven.row(2)] == [10, 12]


def test_lists_that_hold_rows_before_them() -> None:
    """No stacks, but what keys that are not known may hold."""
    plain: list[dict[str, Any]] = [entry(at, frames=[FRAMES[0]]) for at in range(20)]
    for at in range(20, 60):
        plain.append(
            entry(at, frames=[plain[at - 10], plain[0]] if at % 2 else plain[-1]["frames"])
        )
    got = read([FRAMES, *plain, plain[40]["frames"]])

    assert got[1:61] == plain
    assert got[61] == plain[40]["frames"]


def test_lists_that_hold_lists_before_them() -> None:
    plain: list[dict[str, Any]] = [entry(at, frames=[FRAMES[0]]) for at in range(20)]
    for at in range(20, 60):
        plain.append(entry(at, frames=[plain[at - 1]["frames"]] if at % 5 == 0 else [FRAMES[1]]))
    assert read([FRAMES, *plain])[1:] == plain


def test_entries_of_an_earlier_run_are_looked_at_like_others() -> None:
    plain = [entry(at, frames=[FRAMES[0]]) for at in range(60)]
    later = [entry(at, frames=[plain[at]]) for at in range(60)]
    got = read([FRAMES, *plain, "between", plain[5], *later])
    assert got[63:] == later
