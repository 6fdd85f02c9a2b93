from __future__ import annotations

import numpy as np

from tests.support.bad_snapshots import block, entry, segment, snapshot
from tests.support.made_snapshots import assert_identical
from vramscope_analysis.snapshot import Dicts, Snapshot


def test_rows_in_any_order() -> None:
    entries = [
        entry(time_us=at) if at % 2 else {"action": "oom", "device_free": at, "size": 1}
        for at in range(5)
    ]
    snap = Snapshot.from_plain(snapshot(device_traces=[entries]))
    made = Dicts(snap).entries(snap.traces[0], np.array([3, 0, 1]))

    assert_identical(made, [entries[3], entries[0], entries[1]])


def test_words_that_are_not_known_come_back() -> None:
    plain = snapshot(
        segments=[segment(segment_type="huge", blocks=[block(state="gone"), block()])],
        device_traces=[[entry(), entry(action="dreamt", new=(1, 2))]],
    )
    assert_identical(Snapshot.from_plain(plain).to_plain(), plain)


def test_an_entry_with_both_addresses_keeps_both() -> None:
    plain = snapshot(
        device_traces=[[entry(device_free=7), {"action": "oom", "device_free": 8, "size": 1}]]
    )
    snap = Snapshot.from_plain(plain)

    assert snap.traces[0].address.tolist() == [1, 8]
    assert_identical(snap.to_plain(), plain)


def test_lists_of_frames_are_not_shared() -> None:
    frames = [{"name": "f", "filename": "a.py", "line": 3}]
    snap = Snapshot.from_plain(snapshot(device_traces=[[entry(frames=frames)] * 2]))
    first, second = snap.to_plain()["device_traces"][0]
    first["frames"].clear()

    assert second["frames"] == frames


def test_dicts_without_frames() -> None:
    frames = [{"name": "f", "filename": "a.py", "line": 3}]
    snap = Snapshot.from_plain(snapshot(segments=[segment(frames=frames, blocks=[])]))
    dicts = Dicts(snap, frames=False)

    assert dicts.segments(np.array([0])) == [segment(blocks=[])]
    assert dicts.frame_dicts == []
