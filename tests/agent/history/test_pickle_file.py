"""The pickle is the one that viewers open, written in pieces, within a bound."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import pickletools
from pathlib import Path

import pytest

from tests.support.file_limit import largest_file
from tests.support.history_rig import made_snapshot
from vramscope.history.pickle_file import PROTOCOL, WriteStopped, write_pickle

GIB = 1 << 30


def never() -> bool:
    return False


def test_it_is_what_pickle_writes_in_a_protocol_that_viewers_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pickle.gz"
    wanted = made_snapshot(entries=3000)
    file = write_pickle(made_snapshot(entries=3000), str(path), GIB, is_cancelled=never)
    raw = gzip.decompress(path.read_bytes())
    assert pickle.loads(raw) == wanted
    assert next(pickletools.genops(raw))[1] == PROTOCOL == 4
    assert file.raw_bytes == len(raw)
    assert file.wire_bytes == path.stat().st_size
    assert file.sha256 == hashlib.sha256(raw).hexdigest()
    assert path.stat().st_mode & 0o077 == 0


def test_pytorchs_own_viewer_opens_it(tmp_path: Path) -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    path = tmp_path / "a.pickle.gz"
    write_pickle(made_snapshot(entries=10), str(path), GIB, is_cancelled=never)
    snapshot = pickle.loads(gzip.decompress(path.read_bytes()))
    assert "MemoryViz" in viz.trace_plot(snapshot)
    assert "10 entries" in viz.trace(snapshot)


def test_it_lets_go_after_each_piece_for_longer_than_that_took(tmp_path: Path) -> None:
    rests: list[float] = []
    path = str(tmp_path / "a.pickle.gz")
    write_pickle(made_snapshot(30_000), path, GIB, is_cancelled=never, rest=rests.append)
    # Some for what was written, and some for what was freed.
    assert len(rests) > 10
    assert all(0 <= rest_s <= 0.02 for rest_s in rests)
    assert any(rest_s > 0 for rest_s in rests)


def test_the_snapshot_is_taken_apart(tmp_path: Path) -> None:
    snapshot = made_snapshot(5000)
    trace = snapshot["device_traces"][0]
    write_pickle(snapshot, str(tmp_path / "a"), GIB, is_cancelled=never)
    assert (snapshot, trace) == ({}, [])


def test_beyond_its_bound_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(WriteStopped, match="more than the 100 B of disk"):
        write_pickle(made_snapshot(9000), str(tmp_path / "a"), 100, is_cancelled=never)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    with largest_file(1000), pytest.raises(OSError, match="File too large"):
        write_pickle(made_snapshot(30_000), str(tmp_path / "a"), GIB, is_cancelled=never)
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_stopped_at_any_piece(tmp_path: Path) -> None:
    answers = iter([False, False, True])
    with pytest.raises(WriteStopped, match="the process ended"):
        write_pickle(
            made_snapshot(30_000), str(tmp_path / "a"), GIB, is_cancelled=lambda: next(answers)
        )
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("somebody's")
    with pytest.raises(FileExistsError):
        write_pickle(made_snapshot(), str(path), GIB, is_cancelled=never)
    assert path.read_text() == "somebody's"
