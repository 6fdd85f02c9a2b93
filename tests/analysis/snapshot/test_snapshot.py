from __future__ import annotations

import pytest

from tests.support.bad_snapshots import block, entry, segment, snapshot
from vramscope_analysis.snapshot import Action, BlockState, Dicts, Snapshot, SnapshotError

FRAMES = [
    {"name": "f", "filename": "a.py", "line": 3},
    {"name": "g", "filename": "a.py", "line": 4},
]


def made() -> Snapshot:
    blocks = [block(frames=FRAMES), block(state="active_allocated", frames=[])]
    return Snapshot.from_plain(
        snapshot(
            segments=[segment(blocks=blocks), segment(device=2)],
            device_traces=[[], [entry(frames=FRAMES[:1]), entry(action="oom")]],
            allocator_settings={"expandable_segments": True},
            external_annotations=[{"name": "step"}],
            future={"a": 1},
        )
    )


def test_everything_is_where_it_is_said_to_be() -> None:
    snap = made()
    assert snap.settings == {"expandable_segments": True}
    assert snap.annotations == [{"name": "step"}]
    assert snap.host_segments == []
    assert snap.host_trace is None
    assert snap.others == {"future": {"a": 1}}
    assert snap.devices == [0, 1, 2]
    assert snap.blocks.state.tolist()[:2] == [BlockState.INACTIVE, BlockState.ACTIVE_ALLOCATED]
    assert snap.traces[1].action.tolist() == [Action.ALLOC, Action.OOM]
    assert [snap.stacks[index] for index in range(len(snap.stacks))] == [(0, 1), (0,)]
    assert snap.frames[1] == ("a.py", 4, "g")


def test_one_segment_or_entry_as_a_dict() -> None:
    snap = made()
    assert snap.segment(0) == segment(
        blocks=[block(frames=FRAMES), block(state="active_allocated", frames=[])]
    )
    assert snap.segment(0, frames=False) == segment(
        blocks=[block(), block(state="active_allocated")]
    )
    assert snap.entry(1, 0) == entry(frames=FRAMES[:1])


def test_values_at_the_top_that_are_no_tables() -> None:
    snap = made()
    assert snap.kept("future") == {"a": 1}
    assert snap.kept("external_annotations") == [{"name": "step"}]


def test_what_is_no_snapshot_is_refused() -> None:
    with pytest.raises(SnapshotError, match="key 'segments'"):
        Snapshot.from_plain({"device_traces": []})


def test_frames_are_made_once_for_many_dicts() -> None:
    dicts = Dicts(made())
    assert dicts.frame_dicts == FRAMES
