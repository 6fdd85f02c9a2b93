"""What is of now is told from what an agent kept while it was away, whatever its clock says."""

from __future__ import annotations

import pytest

from vramscope_server.policies.pulse import SILENT_NS, Pulse

S = 10**9
HOUR = 3600 * S


def look(pulse: Pulse, now_ns: int, row_ns: int) -> bool:
    pulse.heard(row_ns)
    return pulse.look(now_ns)


@pytest.mark.parametrize("skew_ns", [0, HOUR, -HOUR])
def test_rows_that_come_as_fast_as_time_goes(skew_ns: int) -> None:
    pulse = Pulse()
    assert not look(pulse, 100 * S, 100 * S + skew_ns)  # more of them may wait
    assert all(look(pulse, s * S, s * S + skew_ns) for s in range(101, 110))


def test_nothing_heard_yet() -> None:
    assert not Pulse().look(5 * S)


def test_an_hour_that_comes_within_seconds_is_not_of_now() -> None:
    pulse = Pulse()
    rows = [(100 + s, 600 * s) for s in range(7)]  # ten minutes a second, then all is there
    assert not any(look(pulse, now_s * S, row_s * S) for now_s, row_s in rows)
    assert look(pulse, 107 * S, 3601 * S)


def test_after_a_cut_what_was_kept_is_not_of_now() -> None:
    pulse = Pulse()
    for s in range(3):
        look(pulse, s * S, s * S)
    assert pulse.is_fresh
    # An hour without a connection; the first ten minutes of it come at once.
    assert not look(pulse, HOUR, 600 * S)
    assert not look(pulse, HOUR + S, 1200 * S)
    assert not look(pulse, HOUR + 2 * S, HOUR + 2 * S)
    assert look(pulse, HOUR + 3 * S, HOUR + 3 * S)


def test_a_rank_that_falls_silent() -> None:
    pulse = Pulse()
    look(pulse, 0, 0)
    assert look(pulse, S, S)
    assert pulse.look(S + SILENT_NS)
    assert not pulse.look(2 * S + SILENT_NS)


def test_a_slow_agent_is_of_now() -> None:
    pulse = Pulse()
    look(pulse, 0, 0)
    assert look(pulse, 5 * S, 5 * S)
    assert pulse.look(6 * S)
    assert look(pulse, 10 * S, 10 * S)


def test_a_clock_that_was_set_back() -> None:
    pulse = Pulse()
    for s in range(3):
        look(pulse, s * S, HOUR + s * S)
    assert not look(pulse, 3 * S, 3 * S)
    assert look(pulse, 4 * S, 4 * S)
