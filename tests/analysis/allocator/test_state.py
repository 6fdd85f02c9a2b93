from __future__ import annotations

import pytest

from vramscope_analysis.allocator import AllocatorSettings, FirstFitAddresses
from vramscope_analysis.allocator.private_pools import PrivatePool
from vramscope_analysis.allocator.state import AllocatorState
from vramscope_analysis.allocator.version_rules import Version, rules_of


def new_state(
    capacity_bytes: int | None,
    limit_bytes: int | None,
    threshold: float = 0.0,
    version: Version = (2, 11),
) -> AllocatorState:
    return AllocatorState(
        AllocatorSettings(garbage_collection_threshold=threshold),
        rules_of(version),
        capacity_bytes=capacity_bytes,
        limit_bytes=limit_bytes,
        addresses=FirstFitAddresses(),
        on_event=None,
    )


@pytest.mark.parametrize(
    ("capacity", "limit", "allowed"),
    [(100, None, 100), (100, 70, 70), (100, 300, 100), (None, 70, 70), (None, None, None)],
)
def test_the_lower_of_limit_and_capacity_is_allowed(
    capacity: int | None, limit: int | None, allowed: int | None
) -> None:
    assert new_state(capacity, limit).allowed_bytes == allowed


def test_limit_and_device_are_asked_apart() -> None:
    state = new_state(100, 70)
    state.counters.all.reserved_bytes.increase(50)

    assert state.reserved_bytes == 50
    assert (state.within_limit(20), state.within_limit(21)) == (True, False)
    assert (state.on_device(50), state.on_device(51)) == (True, False)
    assert new_state(None, None).within_limit(1 << 60)
    assert new_state(None, None).on_device(1 << 60)


def test_blocks_age_only_towards_a_limit() -> None:
    assert new_state(100, 70, threshold=0.5).counts_searches
    assert not new_state(100, 70).counts_searches
    assert not new_state(100, None, threshold=0.5).counts_searches


def test_a_change_of_limit_or_threshold_lets_blocks_age_or_not() -> None:
    state = new_state(100, None, threshold=0.5)
    state.change_limit(80)
    assert state.counts_searches

    state.change_settings(AllocatorSettings())
    assert not state.counts_searches


def test_newer_releases_count_reserved_bytes_of_private_pools_apart() -> None:
    older = new_state(None, None)
    assert len(older.reserved_stats(PrivatePool((3, 1), older.new_pool).large)) == 2
    state = new_state(None, None, version=(2, 13))
    default = state.new_pool(None, True)
    private = PrivatePool((3, 1), state.new_pool)

    assert len(state.reserved_stats(default)) == 2
    for stat in state.reserved_stats(private.large):
        stat.increase(7)

    groups = state.counters
    assert (groups.all.reserved_bytes.current, groups.large_pool.reserved_bytes.current) == (7, 7)
    kept = groups.reserved_by_private_pools[3, 1]
    assert {kind: stat.current for kind, stat in kept.items()} == {
        "all": 7,
        "small_pool": 0,
        "large_pool": 7,
    }
