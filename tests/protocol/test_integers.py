"""Ranges of integers that travel."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import ValidationError, convert

from vramscope_protocol.integers import MAX_INT64, Count, Int64, Seq


@pytest.mark.parametrize(
    ("kind", "lowest", "highest"),
    [(Int64, -(2**63), MAX_INT64), (Count, 0, MAX_INT64), (Seq, 1, MAX_INT64)],
)
def test_range(kind: Any, lowest: int, highest: int) -> None:
    assert convert(lowest, kind) == lowest
    assert convert(highest, kind) == highest
    for outside in (lowest - 1, highest + 1):
        with pytest.raises(ValidationError):
            convert(outside, kind)
