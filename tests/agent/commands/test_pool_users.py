"""Segments of private pools count as kept as long as a graph or a pool of the job is there."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

from tests.support.fake_torch import install_fake_torch
from vramscope.commands.pool_users import without_lone_pools

KEPT, LONE, OWN, ORDINARY = (0, 1), (0, 2), (3, 0), (0, 0)


class CUDAGraph:
    """Stands for PyTorch's; a class of Python's, as that is."""

    def __init__(self, pool: tuple[int, int] | None) -> None:
        self._pool = pool

    def pool(self) -> tuple[int, int]:
        if self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool


class MemPool:
    """The same for pools of the job."""

    id = OWN


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    install_fake_torch(monkeypatch)
    cuda: Any = sys.modules["torch"].cuda
    cuda.CUDAGraph, cuda.MemPool = CUDAGraph, MemPool


def pools(*ids: tuple[int, int]) -> list[tuple[int, int]]:
    segments = without_lone_pools([{"segment_pool_id": each, "address": 1} for each in ids])
    assert all(segment["address"] == 1 for segment in segments)
    return [segment["segment_pool_id"] for segment in segments]


def test_what_nobody_keeps_is_as_the_rest() -> None:
    graphs = [CUDAGraph(KEPT), CUDAGraph(None)]
    own = MemPool()
    assert pools(KEPT, LONE, OWN, ORDINARY) == [KEPT, ORDINARY, OWN, ORDINARY]
    del graphs, own
    assert pools(KEPT, LONE, OWN) == [ORDINARY] * 3


def test_without_private_pools_no_object_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "get_objects", lambda: pytest.fail("went through the objects"))
    assert pools(ORDINARY, ORDINARY) == [ORDINARY, ORDINARY]


def test_where_objects_are_frozen_all_pools_may_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 100_000)
    assert pools(LONE, ORDINARY) == [LONE, ORDINARY]
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 375)  # of Python 3.12 itself
    assert pools(LONE, ORDINARY) == [ORDINARY, ORDINARY]


def test_a_torch_without_pools_of_ones_own_has_graphs_alone() -> None:
    cuda: Any = sys.modules["torch"].cuda
    del cuda.MemPool
    assert pools(KEPT) == [ORDINARY]
