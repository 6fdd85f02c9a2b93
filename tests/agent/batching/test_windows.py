"""A change begins where a window begins, by the accumulation before and by the one after."""

from __future__ import annotations

import pytest

from vramscope.batching.windows import FromTheFirst, switch_at


@pytest.mark.parametrize("drawn", range(13))
@pytest.mark.parametrize("offset", [0, 5, -3])
@pytest.mark.parametrize(("now", "then"), [(1, 2), (2, 1), (2, 3), (4, 6)])
def test_the_switch_is_at_the_first_batch_where_both_windows_begin(
    drawn: int, offset: int, now: int, then: int
) -> None:
    at = switch_at(drawn, offset, now, then)
    fitting = [
        batch
        for batch in range(drawn, drawn + 13)
        if (batch + offset) % now == 0 and (batch + offset) % then == 0
    ]
    assert at == fitting[0]


def test_whoever_counts_ahead_of_the_epoch_has_windows_of_its_own() -> None:
    ahead = FromTheFirst()
    ahead.offset = 3
    assert ahead.first_batch(4, 1, 2, lambda at: None) == switch_at(4, 3, 1, 2) == 5
