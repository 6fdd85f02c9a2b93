from __future__ import annotations

import pytest

from vramscope_analysis.snapshot import SnapshotError
from vramscope_analysis.snapshot.pickles.stack import OperandStack


def test_marks_begin_stacks_of_their_own() -> None:
    stack = OperandStack()
    stack.items.append(1)
    stack.mark()
    stack.items.extend([2, 3])

    assert stack.pop_mark() == [2, 3]
    assert stack.items == [1]
    with pytest.raises(SnapshotError, match="needs a mark"):
        stack.pop_mark()


def test_a_container_is_filled_where_it_was_opened() -> None:
    stack = OperandStack()
    opened: list[int] = []
    stack.open(opened)
    assert stack.target(list) is opened
    with pytest.raises(SnapshotError, match="expected a dict to fill, got a list"):
        stack.target(dict)


def test_a_container_from_the_memo_is_not_filled() -> None:
    stack = OperandStack()
    stack.push_finished([])
    with pytest.raises(SnapshotError, match="a list is changed after it was finished"):
        stack.target(list)
    stack.items.pop()
    stack.open([])
    assert stack.target(list) == []


def test_the_same_place_under_another_mark_is_another_place() -> None:
    stack = OperandStack()
    stack.push_finished({})
    stack.mark()
    stack.open({})
    assert stack.target(dict) == {}
