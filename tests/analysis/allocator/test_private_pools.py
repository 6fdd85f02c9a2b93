from __future__ import annotations

import pytest

from vramscope_analysis.allocator.counters import Counters
from vramscope_analysis.allocator.pool import BlockPool
from vramscope_analysis.allocator.private_pools import PrivatePool, PrivatePools
from vramscope_analysis.allocator.settings import UNLIMITED
from vramscope_analysis.allocator.version_rules import Version, rules_of

GRAPH, OTHER = (0, 1), (0, 2)


def new_half(owner: PrivatePool, is_small: bool) -> BlockPool:
    return BlockPool(is_small=is_small, counters=Counters(UNLIMITED), owner=owner)


def new_pools(version: Version = (2, 11)) -> PrivatePools:
    return PrivatePools(new_half, rules_of(version))


def test_a_pool_has_two_halves_with_its_id() -> None:
    pool = new_pools().create(GRAPH)

    small, large = pool.half(is_small=True), pool.half(is_small=False)
    assert (small.is_small, small.pool_id, small.owner) == (True, GRAPH, pool)
    assert (large.is_small, large.pool_id, large.owner) == (False, GRAPH, pool)


def test_a_pool_is_freeable_once_nobody_uses_it() -> None:
    pools = new_pools()
    pool = pools.create(GRAPH)
    assert pools.create(GRAPH) is pool
    pools.begin(GRAPH, is_capture=True, streams=None)
    pools.end(GRAPH)
    assert pool.use_count == 3

    for _ in range(2):
        pools.release(GRAPH)
        assert not len(pools.freeable)
    pools.release(GRAPH)
    assert pools.freeable.values() == [pool]

    with pytest.raises(ValueError, match="expected a pool that is in use"):
        pools.release(GRAPH)
    with pytest.raises(ValueError, match="after its release"):
        pools.create(GRAPH)
    pools.forget(GRAPH)
    assert pools.create(GRAPH) is not pool


@pytest.mark.parametrize(("version", "winner"), [((2, 9), GRAPH), ((2, 10), OTHER)])
def test_the_first_or_the_last_scope_gets_a_request(
    version: Version, winner: tuple[int, int]
) -> None:
    pools = new_pools(version)
    pools.begin(GRAPH, is_capture=True, streams=[7])
    pools.begin(OTHER, is_capture=False, streams=None)

    def diverted(stream: int) -> tuple[int, int] | None:
        pool = pools.diverted_to(stream)
        return None if pool is None else pool.pool_id

    assert diverted(7) == winner
    assert diverted(8) == OTHER
    pools.end(OTHER)
    assert (diverted(7), diverted(8)) == (GRAPH, None)


@pytest.mark.parametrize(("version", "held_back"), [((2, 12), True), ((2, 13), False)])
def test_scopes_hold_events_back_until_only_captures_do(version: Version, held_back: bool) -> None:
    pools = new_pools(version)
    pools.begin(GRAPH, is_capture=False, streams=None)
    assert pools.holds_back is held_back

    pools.begin(OTHER, is_capture=True, streams=None)
    assert pools.holds_back
    pools.end(OTHER)
    pools.end(GRAPH)
    assert not pools.holds_back


def test_scopes_do_not_nest_in_themselves() -> None:
    pools = new_pools()
    pools.begin(GRAPH, is_capture=True, streams=None)

    with pytest.raises(ValueError, match="expected a pool without a scope"):
        pools.begin(GRAPH, is_capture=True, streams=None)
    with pytest.raises(ValueError, match="expected a pool with a scope"):
        pools.end(OTHER)
    with pytest.raises(ValueError, match="expected the id of a private pool"):
        pools.create((0, 0))


def test_a_pool_may_be_told_not_to_split_before_it_exists() -> None:
    pools = new_pools()
    pools.never_split(GRAPH)
    pools.create(OTHER)
    pools.never_split(OTHER)

    for pool_id in (GRAPH, OTHER):
        pool = pools.get(pool_id)
        assert pool.small.never_splits
        assert pool.large.never_splits
