"""The number of samples is found in batches of every make."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.integrations.batch_shape import sample_count


def tensor(*shape: int) -> Any:
    return SimpleNamespace(shape=shape)


@dataclass
class Graph:
    """A batch with attributes."""

    name: str
    nodes: Any


@pytest.mark.parametrize(
    "batch",
    [
        tensor(7, 3),
        [tensor(7, 3), tensor(7)],
        (tensor(7),),
        {"text": ["a"] * 9, "ids": tensor(7, 3)},
        UserDict({"ids": tensor(7, 3)}),
        Graph("name", tensor(7, 3)),
        ({"a": {"b": [tensor(7)]}},),
        [None, 3, tensor(), tensor(7)],
    ],
)
def test_it_is_the_first_dimension_of_the_first_tensor(batch: Any) -> None:
    assert sample_count(batch) == 7


@pytest.mark.parametrize("batch", [None, 3, "text", [], {}, tensor(), ["a", b"b"], [[[[[[]]]]]]])
def test_without_a_tensor_it_is_unknown(batch: Any) -> None:
    assert sample_count(batch) is None


def test_a_batch_that_holds_itself_ends() -> None:
    batch: list[Any] = []
    batch.append(batch)
    assert sample_count(batch) is None


def test_only_so_much_of_nested_lists_is_looked_at() -> None:
    class Part:
        looks = 0

        @property
        def shape(self) -> None:
            Part.looks += 1

    assert sample_count([[[Part()] * 60] * 60] * 60) is None
    assert 100 < Part.looks < 300
