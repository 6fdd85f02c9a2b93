from __future__ import annotations

from vramscope.oom.last_told import LastTold


def test_what_was_read_last_is_kept() -> None:
    answers = [[1], [1, 2]]
    told = LastTold(lambda: answers.pop(0))
    assert told.value == []
    assert told() == [1]
    assert told() == [1, 2]
    assert told.value == [1, 2]
