"""Tensors whose graphs grow, by what holds them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.holders import graph_holders as module  # noqa: E402
from vramscope.holders.graph_holders import Graphs, graph_holders  # noqa: E402
from vramscope.holders.reach import Reach  # noqa: E402

pytestmark = pytest.mark.torch

LEAF = torch.ones(2, requires_grad=True)


def found_now(births: dict[int, int] | None = None) -> Graphs:
    known = births or {}
    reach = Reach(60.0)
    plain = torch.Tensor
    reach.search(lambda value: type(value) is plain and value.grad_fn is not None)
    graphs = graph_holders(reach, reach.found, lambda tensor: known.get(id(tensor)), 60.0)
    reach.clear()
    return graphs


def names(graphs: list[Any]) -> list[str]:
    return [holder.chain[0] for holder in graphs]


def test_an_accumulator_grows_and_a_loss_does_not() -> None:
    total: Any = torch.zeros(2)
    loss = (LEAF * 2).sum()
    total = total + LEAF
    before = found_now()
    loss = (LEAF * 2).sum()
    total = total + LEAF
    after = found_now()
    (holder,) = after.grown_since(before)
    assert (holder.kind, holder.is_growing) == ("autograd_graph", True)
    assert holder.chain == ["total", "graph of 3 nodes"]
    assert [nodes for nodes, _ in after.growth_since(before)] == [1]
    assert not holder.targets[0].is_single  # the statement that uses its own value
    assert loss.grad_fn is not None


def test_a_list_to_which_more_and_more_come() -> None:
    losses = [(LEAF * 2).sum() for _ in range(3)]
    births = {id(loss): number for number, loss in enumerate(losses)}
    graphs = found_now(births)
    assert names(graphs.grown_since(graphs)) == ["losses"]
    assert graphs.holders[0].chain[-1] == "graphs of 3 to 3 nodes"


def test_one_too_long_to_be_counted_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 3)
    total: Any = torch.zeros(2)
    for _ in range(9):
        total = total + LEAF
    graphs = found_now()
    assert "more than" in graphs.holders[0].chain[-1]
    assert names(graphs.grown_since(graphs)) == ["total"]
    assert graphs.growth_since(graphs)[0][0] == 0
