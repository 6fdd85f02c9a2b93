"""Which sizes a command means, and where windows of both accumulations begin."""

from __future__ import annotations

import pytest

from vramscope.batching.sizes import Sizes, wanted_sizes
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.parameters import AccumulationParams, BatchSizeParams

NOW = Sizes(8, 3, 2)


def pair(params: BatchSizeParams | AccumulationParams) -> tuple[int, int]:
    wanted = wanted_sizes(NOW, params)
    assert wanted.ranks == NOW.ranks
    return wanted.batch_size, wanted.accumulation


def test_accumulation_keeps_the_global_batch_either_way() -> None:
    assert NOW.told() == {"batch_size": 8, "accumulation": 3, "global_batch": 48}
    assert pair(BatchSizeParams(4)) == (4, 6)
    assert pair(BatchSizeParams(24)) == (24, 1)
    assert pair(AccumulationParams(12)) == (2, 12)
    assert pair(BatchSizeParams(6, 4)) == (6, 4)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        (BatchSizeParams(5), "4 or 6 would keep the global batch"),
        (AccumulationParams(5), "4 or 6 would keep the global batch"),
        (BatchSizeParams(8, 2), "would be 32 instead of 48"),
    ],
)
def test_anything_else_is_refused_without_consent(
    params: BatchSizeParams | AccumulationParams, reason: str
) -> None:
    with pytest.raises(VramscopeError, match=reason):
        wanted_sizes(NOW, params)


def test_with_consent_it_is_as_asked_for() -> None:
    assert pair(BatchSizeParams(5, change_global_batch=True)) == (5, 3)
    assert pair(BatchSizeParams(4, change_global_batch=True)) == (4, 6)
    assert pair(BatchSizeParams(5, 7, change_global_batch=True)) == (5, 7)
    assert pair(AccumulationParams(5, change_global_batch=True)) == (8, 5)


def test_a_huge_batch_is_refused_as_quickly() -> None:
    with pytest.raises(VramscopeError, match="does not divide"):
        wanted_sizes(Sizes(1 << 24, 1 << 16, 1), BatchSizeParams(3))
