"""A loop that nobody can tell anything keeps its accumulation."""

from __future__ import annotations

import pytest

from vramscope.batching.accumulation import Batches, Change, FixedAccumulation, conflict
from vramscope_protocol.errors import CONFLICT, VramscopeError

NOBODY_KNOWS = Batches(0, None, None)


def test_another_accumulation_is_refused_with_what_to_do() -> None:
    fixed = FixedAccumulation(2)
    fixed.check(Change(4, 2, NOBODY_KNOWS))
    with pytest.raises(VramscopeError, match="cannot be changed from outside") as refused:
        fixed.check(Change(4, 4, NOBODY_KNOWS))
    assert "vramscope.batch_size(...), with accumulation" in refused.value.message
    fixed.set(Change(4, 2, NOBODY_KNOWS))
    assert fixed.value == 2


def test_a_refusal_is_a_conflict() -> None:
    assert conflict("why").code == CONFLICT
