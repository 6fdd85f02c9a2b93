"""Reading snapshots: what pickle builds, by runs or opcode by opcode, or SnapshotError."""

from __future__ import annotations

import gzip
import io
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.made_snapshots import MadeSnapshot, assert_identical, changed, pickled
from vramscope_analysis.snapshot import Snapshot, SnapshotError, read_snapshot
from vramscope_analysis.snapshot.limits import Limits
from vramscope_analysis.snapshot.pickles.machine import Machine
from vramscope_analysis.snapshot.pickles.source import check_pickle
from vramscope_analysis.snapshot.plain import snapshot_of
from vramscope_analysis.snapshot.runs import run_reader
from vramscope_analysis.snapshot.tables.building import Building

TRACES = sorted((Path(__file__).parents[2] / "data" / "traces").glob("*.pickle.gz"))


def read(data: bytes, *, with_runs: bool) -> dict[str, Any] | SnapshotError:
    """What reading gives, with the runs decoded at once or not."""
    limits = Limits()
    try:
        check_pickle(data)
        machine = Machine(data, limits, with_runs=with_runs)
        plain = machine.run()
        building = Building(limits, limits.rows(len(data)), keeps_runs=machine.shares_runs)
        return snapshot_of(plain, building).to_plain()
    except SnapshotError as error:
        return error


def assert_both_ways(data: bytes) -> dict[str, Any] | None:
    """Both ways give the same, or refuse."""
    slow, fast = read(data, with_runs=False), read(data, with_runs=True)
    if isinstance(slow, SnapshotError) or isinstance(fast, SnapshotError):
        assert type(slow) is type(fast), (slow, fast)
        return None
    assert_identical(fast, slow)
    return fast


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.partition(".")[0])
def test_a_recorded_snapshot_is_read_exactly(path: Path) -> None:
    data = gzip.decompress(path.read_bytes())
    expected = pickle.loads(data)
    snapshot = read_snapshot(path)

    got = snapshot.to_plain()
    assert got == expected
    assert list(got) == list(expected)
    # Equal dicts can have their keys in another order.
    for rows in ("segments", "external_annotations"):
        assert [list(row) for row in got[rows]] == [list(row) for row in expected[rows]]
    for trace, rows in zip(got["device_traces"], expected["device_traces"], strict=True):
        assert [list(row) for row in trace] == [list(row) for row in rows]


def test_recorded_entries_are_decoded_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = run_reader.RunReader.take

    def counting(self: Any, at: int, frame_end: int) -> Any:
        run = take(self, at, frame_end)
        taken.append(run.run.count if run else 0)
        return run

    monkeypatch.setattr(run_reader.RunReader, "take", counting)
    path = next(path for path in TRACES if path.name.startswith("varlen__default"))
    entries = len(read_snapshot(path).traces[0])

    assert sum(taken) > 0.99 * entries
    assert len(taken) < 0.02 * entries


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_is_decoded_in_runs(protocol: int) -> None:
    plain = pickle.loads(gzip.decompress(TRACES[0].read_bytes()))
    data = pickle.dumps(plain, protocol)
    # So few that opcode by opcode would not do.
    snapshot = read_snapshot(data, limits=Limits(opcodes=len(data) // 16))

    assert_identical(snapshot.to_plain(), plain)


@pytest.mark.parametrize("seed", range(40))
def test_made_up_snapshots_are_read_exactly(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    # Many windows, and runs of everything.
    monkeypatch.setattr(run_reader, "WINDOW_BYTES", chance.choice((300, 3000, 20_000, 1 << 20)))
    monkeypatch.setattr(run_reader, "LEAST_ROWS", chance.choice((1, 2, 16)))
    plain = MadeSnapshot(chance).plain
    data = pickled(plain, chance)
    got = assert_both_ways(data)

    assert_identical(got, plain)
    assert_identical(read_snapshot(data).to_plain(), plain)


@pytest.mark.parametrize("seed", range(60))
def test_changed_pickles_give_the_same_both_ways(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1000 + seed)
    monkeypatch.setattr(run_reader, "WINDOW_BYTES", chance.choice((300, 3000, 20_000)))
    monkeypatch.setattr(run_reader, "LEAST_ROWS", chance.choice((1, 2, 16)))
    data = pickled(MadeSnapshot(chance).plain, chance)
    for _ in range(4):
        assert_both_ways(changed(data, chance))


def test_every_truncation_is_refused() -> None:
    plain = {
        "segments": [],
        "device_traces": [
            [
                {"action": "alloc", "addr": at, "size": 1 << at % 40, "frames": []}
                for at in range(40)
            ]
        ],
    }
    for data in (pickle.dumps(plain, 2), pickle.dumps(plain, 4)):
        for end in range(len(data)):
            with pytest.raises(SnapshotError, match=r"truncated|empty"):
                read_snapshot(data[:end])


def test_truncated_gzip_is_refused() -> None:
    data = gzip.compress(pickle.dumps({"segments": []}, 4))
    for end in range(2, len(data)):
        with pytest.raises(SnapshotError, match=r"truncated|damaged"):
            read_snapshot(data[:end])


def test_sources_of_every_kind(tmp_path: Path) -> None:
    data = pickle.dumps({"segments": [], "device_traces": []}, 4)
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(data)
    with path.open("rb") as file:
        from_file = read_snapshot(file)
    expected: dict[str, Any] = {"segments": [], "device_traces": []}

    assert from_file.to_plain() == expected
    for source in (path, str(path), data, io.BytesIO(data), gzip.compress(data)):
        assert read_snapshot(source).to_plain() == expected
    with pytest.raises(FileNotFoundError):
        read_snapshot(tmp_path / "nowhere.pickle")


def test_messages_name_the_file_as_the_caller_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.pickle").write_bytes(b"\x80\x04]\x94.")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SnapshotError, match=r"^bad\.pickle: expected the dict of") as raised:
        read_snapshot("bad.pickle")
    assert str(tmp_path) not in str(raised.value)
    with pytest.raises(SnapshotError, match=r"^snapshot: expected"):
        read_snapshot(b"\x80\x04]\x94.")


def test_progress_goes_up_to_the_size() -> None:
    plain = {"segments": [], "extra": [[at] for at in range(40_000)]}
    data = pickle.dumps(plain, 4)
    seen: list[tuple[int, int]] = []
    read_snapshot(data, progress=lambda done, size: seen.append((done, size)))

    assert len(seen) > 2
    assert seen == sorted(seen)
    assert {size for _, size in seen} == {len(data)}


def test_from_plain_takes_what_reading_gives() -> None:
    plain = pickle.loads(gzip.decompress(TRACES[0].read_bytes()))
    assert_identical(Snapshot.from_plain(plain).to_plain(), plain)
