"""Plain data comes as it is, everything else in words, and neither without an end."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from vramscope.commands.plain_answer import MAX_CHARACTERS, plain_answer


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("a", "a"),
        ([1, (2, "x")], [1, [2, "x"]]),
        ({"a": {"b": [None]}, 3: 4}, {"a": {"b": [None]}, "3": 4}),
        (OrderedDict(a=1), {"a": 1}),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1 << 70, str(1 << 70)),
        ("\udc80", "\\udc80"),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
    ],
)
def test_plain_data_is_told_as_it_is(value: Any, told: Any) -> None:
    assert plain_answer(value) == (told, True)
    msgspec.msgpack.encode(plain_answer(value)[0])


def deep(levels: int) -> list[Any]:
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        {(1, 2): 3},
        deep(20),
        "x" * (MAX_CHARACTERS + 1),
        list(range(100_000)),
        np.zeros(3),
        b"bytes",
    ],
)
def test_the_rest_is_told_in_words_that_are_cut(value: Any) -> None:
    told, is_itself = plain_answer(value)
    assert not is_itself
    assert isinstance(told, str)
    assert 0 < len(told) <= 2100


def test_what_holds_itself_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert not plain_answer(loop)[1]


def test_the_values_of_a_tensor_are_not_fetched() -> None:
    class Tensor(SimpleNamespace):
        def __repr__(self) -> str:
            raise AssertionError("this waits for the device")

    tensor = Tensor(shape=(2, 3), dtype="torch.float32", device="cuda:0")
    assert plain_answer(tensor) == ("Tensor of shape [2, 3], torch.float32, on cuda:0", False)
