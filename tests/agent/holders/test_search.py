"""What holds tensors is said for all of them, the holder of the most first."""

from __future__ import annotations

import weakref

import pytest

torch = pytest.importorskip("torch")

from vramscope.holders.search import holders_of  # noqa: E402

pytestmark = pytest.mark.torch


def test_tensors_of_a_list_and_one_of_a_variable() -> None:
    kept = [torch.ones(2) for _ in range(3)]
    alone = torch.ones(3)
    first, second = holders_of([*kept, alone], [0, 1, 2, 2])
    assert (first.kind, first.chain, first.tensors) == ("local", ["kept", "list of 3"], 3)
    assert first.is_growing
    assert (second.chain, second.is_growing) == (["alone"], None)
    assert first.targets == []  # no source is read


def test_what_no_name_leads_to_is_left_out() -> None:
    assert holders_of([]) == []
    found = holders_of([torch.ones(1)])  # only the list of the call has it
    assert found == []


def test_nothing_is_kept_alive() -> None:
    value = torch.ones(2)
    gone = weakref.ref(value)
    holders_of([value])
    del value
    assert gone() is None


def test_it_ends_when_its_time_is_over() -> None:
    kept = [torch.ones(2)]
    assert holders_of(kept, limit_s=0.0) == []
