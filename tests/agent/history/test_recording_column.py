"""Who records: nobody, vramscope, or the job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.history.recording_column import NOBODY, OURS, THE_JOBS, RecordingColumn


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
