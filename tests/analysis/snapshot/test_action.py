from __future__ import annotations

from vramscope_analysis.snapshot import Action, BlockState


def test_words_are_those_of_pytorch() -> None:
    assert [action.word for action in Action] == [
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_free",
        "segment_map",
        "segment_unmap",
        "snapshot",
        "oom",
        "annotate",
        "other",
    ]
    assert BlockState.ACTIVE_PENDING_FREE.word == "active_pending_free"
    assert max(Action) < 256
    assert max(BlockState) < 256
