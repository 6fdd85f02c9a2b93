from __future__ import annotations

import pytest

from vramscope_analysis.allocator.version_rules import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    PoolFallback,
    TieBreak,
    Version,
    VersionRules,
    rules_of,
)


@pytest.mark.parametrize("version", [(2, minor) for minor in range(4, 15)])
def test_every_release_has_rules(version: Version) -> None:
    assert isinstance(rules_of(version), VersionRules)


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
