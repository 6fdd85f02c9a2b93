from __future__ import annotations

import pytest

from vramscope_analysis.allocator.version_rules import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    PoolFallback,
    TieBreak,
    Version,
    rules_of,
)

VERSIONS: list[Version] = [(2, minor) for minor in range(4, 15)]


@pytest.mark.parametrize("version", [(2, 3), (2, 15), (1, 13), (3, 0)])
def test_other_releases_are_refused(version: Version) -> None:
    with pytest.raises(ValueError, match=r"expected a torch version from 2\.4 to 2\.14, got"):
        rules_of(version)


@pytest.mark.parametrize(
    ("version", "tie_break", "fallback"),
    [
        (OLDEST_VERSION, TieBreak.ADDRESS, PoolFallback.NEVER),
        ((2, 7), TieBreak.ADDRESS, PoolFallback.NEVER),
        ((2, 8), TieBreak.ADDRESS, PoolFallback.LAST),
        ((2, 10), TieBreak.ADDRESS, PoolFallback.LAST),
        ((2, 11), TieBreak.ADDRESS, PoolFallback.FIRST),
        ((2, 12), TieBreak.OLDEST_BLOCK, PoolFallback.FIRST),
        ((2, 13), TieBreak.OLDEST_MEMORY, PoolFallback.FIRST),
        (NEWEST_VERSION, TieBreak.OLDEST_MEMORY, PoolFallback.FIRST),
    ],
)
def test_what_changed_when(version: Version, tie_break: TieBreak, fallback: PoolFallback) -> None:
    rules = rules_of(version)

    assert (rules.tie_break, rules.pool_fallback) == (tie_break, fallback)


@pytest.mark.parametrize(
    ("rule", "since"),
    [
        ("newest_scope_first", (2, 10)),
        ("only_captures_hold_back", (2, 13)),
        ("full_fraction_lifts_limit", (2, 10)),
        ("fraction_is_option", (2, 10)),
        ("pages_by_request", (2, 10)),
        ("counts_rejections", (2, 12)),
        ("counts_private_pools", (2, 13)),
    ],
)
def test_rules_that_came_and_stayed(rule: str, since: Version) -> None:
    following = [version for version in VERSIONS if getattr(rules_of(version), rule)]

    assert following == [version for version in VERSIONS if version >= since]


def test_a_flush_in_a_scope_fails_up_to_2_7() -> None:
    failing = [version for version in VERSIONS if rules_of(version).flush_in_scope_fails]

    assert failing == [(2, 4), (2, 5), (2, 6), (2, 7)]
