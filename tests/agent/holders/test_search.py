"""What holds tensors is said for all of them, the holder of the most first."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import pytest

torch = pytest.importorskip("torch")

from vramscope.history.no_collection import no_collection  # noqa: E402
from vramscope.holders.holder import HolderFound  # noqa: E402
from vramscope.holders.live_tensors import looking  # noqa: E402
from vramscope.holders.reach import Reach  # noqa: E402
from vramscope.holders.search import holders_within  # noqa: E402

pytestmark = pytest.mark.torch


def holders_of(births: Mapping[int, int], limit_s: float = 60.0) -> list[HolderFound]:
    """What holds tensors that are told by their ids: a variable here would hold them as well."""
    reach = Reach(limit_s)
    try:
        with looking():
            reach.search(lambda value: id(value) in births)
            born = {number: births[id(reach.objects[number])] for number in reach.found}
            return holders_within(reach, born)
    finally:
        reach.clear()


def test_tensors_of_a_list_and_one_of_a_variable() -> None:
    kept = [torch.ones(2) for _ in range(3)]
    alone = torch.ones(3)
    births = {id(kept[0]): 0, id(kept[1]): 1, id(kept[2]): 2, id(alone): 2}
    first, second = holders_of(births)
    assert (first.kind, first.chain, first.tensors) == ("local", ["kept", "list of 3"], 3)
    assert first.is_growing
    assert (second.chain, second.is_growing) == (["alone"], None)


def test_what_no_name_leads_to_is_left_out() -> None:
    assert holders_of({}) == []
    with no_collection():
        circle = [torch.ones(1)]
        circle.append(circle)
        number = id(circle[0])
        assert len(holders_of({number: 0})) == 1
        del circle
        assert holders_of({number: 0}) == []


def test_nothing_is_kept_alive() -> None:
    value = torch.ones(2)
    gone = weakref.ref(value)
    assert len(holders_of({id(value): 0})) == 1
    del value
    assert gone() is None


def test_it_ends_when_its_time_is_over() -> None:
    kept = [torch.ones(2)]
    assert holders_of({id(kept[0]): 0}, limit_s=0.0) == []
