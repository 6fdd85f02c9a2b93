"""How long the host's memory lasts: known only with a limit, and as a range."""

from __future__ import annotations

from tests.support.made_ranks import GIB, MIB, rows_of
from vramscope_analysis.diagnosis.host_limit import host_limit
from vramscope_analysis.evidence.columns import UNKNOWN

LIMIT = {"host.limit_bytes": 64 * GIB, "host.limit_used_bytes": 40 * GIB}


def test_what_is_left_and_for_how_long() -> None:
    limit = host_limit(rows_of(1, LIMIT), 10 * MIB)
    assert (limit.free_bytes, limit.is_near) == (24 * GIB, True)
    assert limit.words == " 24.0 GiB of host memory are left: 32 to 52 minutes at this speed."


def test_far_away_is_not_told_and_not_near() -> None:
    limit = host_limit(rows_of(1, LIMIT), 0.1 * MIB)
    assert (limit.is_near, limit.words) == (False, "")


def test_the_last_tenth_is_near_however_slow() -> None:
    nearly = {**LIMIT, "host.limit_used_bytes": 60 * GIB}
    assert host_limit(rows_of(1, nearly), 0.1 * MIB).is_near


def test_without_a_limit_nothing_is_said() -> None:
    for columns in ({}, {**LIMIT, "host.limit_bytes": UNKNOWN}):
        limit = host_limit(rows_of(1, columns), 10 * MIB)
        assert (limit.is_near, limit.words, limit.seconds_left) == (False, "", None)
