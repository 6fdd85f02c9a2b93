"""Graphs are counted by their nodes, and nothing that is saved in them is opened."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope.holders.graphs import graph_nodes
from vramscope.holders.time_box import TimeBox

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def accumulated(times: int) -> Any:
    start = torch.ones(2, requires_grad=True)
    total = torch.zeros(2)
    for _ in range(times):
        total = total + start * 2
    return total


def test_each_node_counts_once() -> None:
    assert graph_nodes(torch.ones(2), TimeBox(10)) == 0
    # An addition and a multiplication each time, and the leaf.
    assert graph_nodes(accumulated(5), TimeBox(10)) == 11
    assert graph_nodes(accumulated(6), TimeBox(10)) == 13


def test_no_further_than_the_bounds() -> None:
    total = accumulated(500)
    assert graph_nodes(total, TimeBox(10), most=100) <= 101
    assert graph_nodes(total, TimeBox(0)) < 1001


def test_saved_tensors_are_not_unpacked() -> None:
    opened: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, opened.append):
        value = torch.ones(2, requires_grad=True).exp().sin()
    assert graph_nodes(value, TimeBox(10)) == 3
    assert opened == []
