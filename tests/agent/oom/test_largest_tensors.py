from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.oom.largest_tensors import MAX_TENSORS, Largest, largest_tensors  # noqa: E402
from vramscope.tensors.category import PARAMETERS  # noqa: E402
from vramscope.tensors.owners import Owned, Owners  # noqa: E402

pytestmark = pytest.mark.torch

COUNT = 1 << 20
"""Numbers of a tensor that is larger than any that other tests may have left."""


def storage(tensor: Any) -> tuple[int, int] | None:
    held = tensor.untyped_storage()
    return (held.data_ptr(), held.nbytes()) if held.nbytes() >= 4 * COUNT else None


def find(owners: Owners | None = None, *, holders: bool = True, seconds: float = 30.0) -> Largest:
    return largest_tensors(storage, owners, time.perf_counter() + seconds, holders=holders)


@pytest.fixture
def without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def test_a_storage_is_there_once_with_its_tensor_and_its_holder() -> None:
    kept = [torch.zeros(2, COUNT), torch.zeros(COUNT, dtype=torch.int64)]
    view = kept[0][0]
    rows = find().rows
    assert [row["bytes"] for row in rows] == [8 * COUNT, 8 * COUNT]
    assert {row["tensor"] for row in rows} & {f"int64[{COUNT}]"} == {f"int64[{COUNT}]"}
    assert all("kept" in row["held_by"] or "view" in row["held_by"] for row in rows)
    assert all(row["holder"]["kind"] == "local" for row in rows)
    del view


def test_whose_it_is_is_told_by_the_owners() -> None:
    weight = torch.zeros(COUNT)
    owned = Owned(weight.data_ptr(), 4 * COUNT, PARAMETERS, "head.weight")
    (row,) = find(Owners([owned], 3, 0)).rows
    assert (row["category"], row["name"]) == ("parameters", "head.weight")


def test_what_only_waits_for_the_collector_is_told(without_collection: None) -> None:
    class Node:
        """Holds itself."""

    def make() -> None:
        node: Any = Node()
        node.itself, node.tensor = node, torch.zeros(COUNT)

    kept = torch.zeros(2 * COUNT)
    make()
    found = find()
    assert found.garbage_bytes == 4 * COUNT
    assert [row["holder"]["kind"] for row in found.rows] == ["local", "garbage"]
    del kept


def test_nothing_is_held_by_the_look_itself(without_collection: None) -> None:
    kept = [torch.zeros(COUNT) for _ in range(3)]
    refs = [weakref.ref(each) for each in kept]
    assert len(find().rows) == 3
    kept.clear()
    assert [ref() for ref in refs] == [None] * 3


def test_the_largest_of_many_are_there() -> None:
    kept = [torch.zeros(COUNT + number) for number in range(MAX_TENSORS + 3)]
    found = find(holders=False)
    assert len(found.rows) == MAX_TENSORS
    assert found.rows[0]["bytes"] == 4 * (COUNT + MAX_TENSORS + 2)
    assert found.garbage_bytes is None
    assert found.rows[0]["holder"] is None
    del kept


def test_when_the_time_is_over_what_was_found_is_told() -> None:
    kept = torch.zeros(COUNT)
    found = find(seconds=-1)
    assert not found.is_complete
    assert found.garbage_bytes is None
    del kept


@pytest.mark.expects_guarded_errors
def test_a_search_for_holders_that_fails_costs_only_them(monkeypatch: pytest.MonkeyPatch) -> None:
    import vramscope.oom.largest_tensors as module

    def fail(*arguments: Any) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr(module, "who_holds", fail)
    kept = torch.zeros(COUNT)
    (row,) = find().rows
    assert row["held_by"] == []
    del kept
