"""Who records: nobody, vramscope, or the job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.history.recording_column import (
    ASK_INTERVAL_NS,
    NOBODY,
    OURS,
    THE_JOBS,
    RecordingColumn,
)


@pytest.mark.parametrize(
    ("window", "is_recording", "said"),
    [(None, False, NOBODY), (None, True, THE_JOBS), (object(), True, OURS)],
)
def test_who_records(window: Any, is_recording: bool, said: int) -> None:
    column = RecordingColumn(
        SimpleNamespace(window=window), SimpleNamespace(is_recording=lambda: is_recording)
    )
    assert column.take() == [said]
    assert len(column.names) == 1


def test_steps_that_follow_each_other_closely_repeat_the_answer() -> None:
    own, pytorch = SimpleNamespace(window=None), SimpleNamespace(asked=0, records=False)
    now_ns = [0]

    def is_recording() -> bool:
        pytorch.asked += 1
        return bool(pytorch.records)

    pytorch.is_recording = is_recording
    column = RecordingColumn(own, pytorch, lambda: now_ns[0])
    for _ in range(10):
        assert column.take() == [NOBODY]
    assert pytorch.asked == 1
    pytorch.records = True
    now_ns[0] = ASK_INTERVAL_NS
    assert column.take() == [THE_JOBS]
    # Our own window is known without asking, and when it is over it is asked anew.
    own.window = object()
    assert column.take() == [OURS]
    own.window, pytorch.records = None, False
    assert column.take() == [NOBODY]
