from __future__ import annotations

import numpy as np
import pytest

from vramscope_analysis.snapshot import Frame, Frames, Snapshot, Stacks

FRAMES = [
    {"name": f"f{at}", "filename": "a.py", "line": at, "fx_node_op": "call"} for at in range(3)
]


def test_a_stack_is_a_tuple_of_frame_indices() -> None:
    stacks = Stacks(np.array([0, 2, 5]), np.array([4, 1, 0, 2, 0], np.int32))
    assert len(stacks) == 2
    assert [stacks[0], stacks[1]] == [(4, 1), (0, 2, 0)]
    for beyond in (2, -1):
        with pytest.raises(IndexError):
            stacks[beyond]


def test_frames_of_a_snapshot() -> None:
    entries = [{"action": "alloc", "addr": 1, "size": 2, "frames": FRAMES}]
    frames: Frames = Snapshot.from_plain({"segments": [], "device_traces": [entries]}).frames

    assert len(frames) == 3
    assert frames[2] == Frame("a.py", 2, "f2")
    assert frames.keys == {"name", "filename", "line", "fx_node_op"}
    with pytest.raises(IndexError):
        frames[3]
