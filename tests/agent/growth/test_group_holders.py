"""Samples of groups are found by name, above, in graphs, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.growth.group_holders import GroupHolders, Held, name_missing  # noqa: E402
from vramscope.growth.groups import Group  # noqa: E402
from vramscope.holders.holder import HolderFound  # noqa: E402

pytestmark = pytest.mark.torch

GRAPH = HolderFound("autograd_graph", ["total", "graph of 9 nodes"], is_growing=True)


def place(tensor: Any) -> tuple[int, int] | None:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def group_of(*tensors: Any, more: int = 0) -> Group:
    addresses = [[tensor.data_ptr()] for tensor in tensors] + [[1 + n] for n in range(more)] + [[]]
    return Group(0, 0, 0, [], [], addresses)


def search(limit_s: float = 60.0) -> GroupHolders:
    return GroupHolders(place, {}, limit_s)


def test_by_name_and_what_is_missing() -> None:
    kept = [torch.ones(5) for _ in range(3)]
    (held,) = search().find([group_of(*kept, more=1)], upwards=False)
    assert held.tensors == ["float32[5]"]
    assert held.holders[0].chain[0] == "kept"
    assert (held.found, len(held.missing)) == (3, 1)


def test_gradients_are_found_by_their_parameters() -> None:
    models = [torch.nn.Linear(3, 3, bias=False) for _ in range(3)]
    for model in models:
        model(torch.ones(1, 3)).sum().backward()
    group = group_of(*(model.weight.grad for model in models))
    (held,) = search().find([group], upwards=False)
    assert held.missing == {}
    assert held.holders[0].chain[0] == "models"
    assert held.holders[0].chain[-1] == ".grad"


def test_a_search_that_was_stopped_says_so() -> None:
    kept = [torch.ones(5)]
    late = search(limit_s=0.0)
    late.find([group_of(*kept)], upwards=True)
    assert any("ended" in note for note in late.notes)
    assert late.ran_out


def test_one_that_was_not_does_not() -> None:
    kept = [torch.ones(5)]
    whole = search()
    whole.find([group_of(*kept)], upwards=False)
    assert (whole.notes, whole.ran_out) == ([], False)


def test_what_has_no_object_in_python() -> None:
    held = Held(missing={1: 0, 2: 0})
    name_missing(held, [GRAPH], set(), was_searched=True)
    assert [(each.kind, each.tensors) for each in held.holders] == [("autograd_graph", 2)]
    held = Held(missing={1: 0, 2: 0})
    name_missing(held, [GRAPH], {1}, was_searched=True)
    assert [(each.kind, each.tensors) for each in held.holders] == [
        ("ipc", 1),
        ("autograd_graph", 1),
    ]
    held = Held(missing={1: 0})
    name_missing(held, [], set(), was_searched=True)
    assert held.holders[0].kind == "cpp"
    held = Held(missing={1: 0})
    name_missing(held, [], set(), was_searched=False)
    assert held.holders[0].kind == "unknown"


def test_garbage_comes_before_a_variable_with_as_many() -> None:
    held = Held(holders=[HolderFound("local", ["x"], tensors=1), HolderFound("garbage", tensors=1)])
    name_missing(held, [], set(), was_searched=True)
    assert [each.kind for each in held.holders] == ["garbage", "local"]
