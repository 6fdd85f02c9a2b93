from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from tests.support.made_snapshots import LURES
from vramscope_analysis.snapshot import Limits, SnapshotError
from vramscope_analysis.snapshot.pickles.machine import Machine
from vramscope_analysis.snapshot.runs import run_reader
from vramscope_analysis.snapshot.runs.run import Run, count_rows, expand
from vramscope_analysis.snapshot.runs.run_reader import RunReader, Taken


class Watched:
    """Executes a pickle and notes what each attempt to take a run gave."""

    def __init__(self, data: bytes, monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
        self.counts: list[int] = []
        take = RunReader.take

        def taking(reader: RunReader, at: int, frame_end: int) -> Taken | None:
            taken = take(reader, at, frame_end)
            self.counts.append(taken.run.count if taken else 0)
            return taken

        with monkeypatch.context() as patch:
            patch.setattr(RunReader, "take", taking)
            self.result = Machine(data, Limits(**limits)).run()

    @property
    def in_runs(self) -> int:
        return sum(self.counts)


def entries(count: int, seed: int = 0) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    actions = ("alloc", "free_requested", "free_completed")
    return [
        {"action": actions[at % 3], "addr": chance.getrandbits(47), "size": chance.getrandbits(34)}
        for at in range(count)
    ]


def expanded(items: list[Any]) -> list[Any]:
    expand(items)
    return items


def test_all_but_the_first_entries_are_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = entries(3000)
    watched = Watched(pickle.dumps(plain, 4), monkeypatch)

    assert watched.in_runs > 2990
    assert len(watched.counts) < 10
    assert count_rows(watched.result) == 3000
    assert expanded(watched.result) == plain


def test_windows_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_reader, "WINDOW_BYTES", 5000)
    plain = entries(3000)
    watched = Watched(pickle.dumps(plain, 4), monkeypatch)

    assert len([count for count in watched.counts if count]) > 10
    assert watched.in_runs > 2900
    assert expanded(watched.result) == plain


def test_short_stretches_are_left_to_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(pickle.dumps([entries(12, at) for at in range(9)], 4), monkeypatch)
    assert watched.in_runs == 0


def test_other_dicts_are_left_to_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [{"name": f"n{at}", "line": at} for at in range(200)]
    watched = Watched(pickle.dumps(plain, 4), monkeypatch)
    assert watched.in_runs == 0
    assert watched.result == plain


def test_several_sets_of_keys_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = entries(4000)
    for at, entry in enumerate(plain):
        if at % 2:
            entry["extra"] = None
        if at % 3 == 0:
            entry["pool_id"] = (at % 5, 0)
    watched = Watched(pickle.dumps(plain, 4), monkeypatch)

    assert watched.in_runs > 3900
    assert expanded(watched.result) == plain


def test_bytes_that_look_like_dicts_are_not_taken_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = entries(2000)
    for at, entry in enumerate(plain):
        entry["addr"] = int.from_bytes(LURES[at % 3].ljust(7, b"K"), "little")
    keys = pickle.dumps(plain, 4)
    # The very bytes that begin the entries, within some.
    first = keys.index(b"}\x94(h", 200)
    for entry in plain[::50]:
        entry["addr"] = int.from_bytes(keys[first : first + 7], "little")
    watched = Watched(pickle.dumps(plain, 4), monkeypatch)

    assert watched.in_runs > 0
    assert expanded(watched.result) == plain


def test_useless_windows_make_it_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that are too long for runs, between lists that are no entries at all."""
    monkeypatch.setattr(run_reader, "WINDOW_BYTES", 2000)
    monkeypatch.setattr(run_reader, "_LEARN_EVERY_BYTES", 2000)
    plain: list[Any] = [*entries(30)]
    for entry in entries(3000):
        plain += [entry, ["x" * 99], ["y" * 99]]
    opened: list[int] = []
    opening = RunReader._open

    def noting(reader: RunReader, *arguments: Any) -> Any:
        opened.append(arguments[1])
        return opening(reader, *arguments)

    monkeypatch.setattr(RunReader, "_open", noting)
    data = pickle.dumps(plain, 4)
    assert expanded(Machine(data, Limits()).run()) == plain
    assert len(opened) < len(data) / 2000 / 3


def test_dicts_that_are_fetched_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    plain: list[Any] = entries(20_000)
    plain += plain[100:19_900]
    data = pickle.dumps(plain, 4)
    assert expanded(Watched(data, monkeypatch).result) == plain
    with pytest.raises(SnapshotError, match="too many opcodes"):
        Watched(data, monkeypatch, opcodes=500_000)


def test_runs_that_become_dicts_are_bounded() -> None:
    items = pickle.dumps(entries(2000), 4)[11:-1]
    items = items[items.index(b"(") + 1 : -1].replace(b"e(", b"")
    data = b"\x80\x04](]\x94(" + items + b"te."
    Machine(data, Limits()).run()
    with pytest.raises(SnapshotError, match="entries are used in too odd a way"):
        Machine(data, Limits(opcodes=7000)).run()


def test_progress_is_reported_by_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_reader, "WINDOW_BYTES", 5000)
    seen: list[int] = []
    Machine(pickle.dumps(entries(3000), 4), Limits(), lambda done, _: seen.append(done)).run()
    assert len(seen) > 10
    assert seen == sorted(seen)


def test_a_run_knows_its_dicts_without_the_machine() -> None:
    result = Machine(pickle.dumps(entries(100), 4), Limits()).run()
    runs = [item for item in result if type(item) is Run]
    assert runs[0].dicts()[-1] == entries(100)[-1]
