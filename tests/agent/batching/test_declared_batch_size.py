"""A loop of one's own says what is to be changed, and reads what it is now."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import vramscope
from vramscope.batching.accumulation import Batches, Change
from vramscope.batching.declared_batch_size import (
    AccumulationOf,
    declared_batch_size,
    forget_declared,
)
from vramscope_protocol.errors import VramscopeError

pytestmark = pytest.mark.torch

TWICE = Change(4, 6, Batches(0, None, None))


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    forget_declared()
    yield
    forget_declared()


def loader(size: int = 8) -> Any:
    from torch.utils.data import DataLoader

    data: Any = range(32)
    made: Any = DataLoader(data, batch_size=size)
    return made


def test_a_loader_and_its_batch_sampler_are_the_same_thing() -> None:
    data = loader()
    sizes = vramscope.batch_size(data, accumulation=3)
    assert (sizes.value, sizes.accumulation) == (8, 3)
    assert declared_batch_size() is sizes
    again = vramscope.batch_size(data.batch_sampler)
    assert declared_batch_size() is again
    data.batch_sampler.batch_size = 4
    assert sizes.value == again.value == 4


def test_a_function_is_called_with_the_new_size() -> None:
    calls: list[int] = []
    sizes = vramscope.batch_size(calls.append, size=8)
    sizes.check_size()
    sizes.set_size(4)
    assert (calls, sizes.value) == ([4], 4)
    with pytest.raises(VramscopeError, match="the present size"):
        vramscope.batch_size(calls.append).check_size()


@pytest.mark.parametrize("name", ["gradient_accumulation_steps", "value"])
def test_accumulation_may_be_an_attribute(name: str) -> None:
    holder = SimpleNamespace(**{name: 3})
    sizes = vramscope.batch_size(loader(), holder)
    AccumulationOf(sizes).set(TWICE)
    assert (sizes.accumulation, getattr(holder, name)) == (6, 6)


def test_accumulation_may_be_a_number_that_the_loop_reads_or_a_function() -> None:
    data = loader()
    calls: list[int] = []
    for given, steps in ((3, None), (calls.append, 3)):
        sizes = vramscope.batch_size(data, given, steps=steps)
        accumulation = AccumulationOf(sizes)
        accumulation.check(TWICE)
        assert accumulation.value == 3
        accumulation.set(TWICE)
        assert sizes.accumulation == 6
    assert calls == [6]


def test_without_a_word_on_accumulation_it_stays() -> None:
    sizes = vramscope.batch_size(loader())
    sizes.check(Change(4, 1, Batches(0, None, None)))
    with pytest.raises(VramscopeError, match="was not told how this loop accumulates"):
        sizes.check(TWICE)


def test_it_keeps_no_loader_alive_and_several_are_refused() -> None:
    first, second = loader(), loader()
    kept = vramscope.batch_size(first)
    vramscope.batch_size(second)
    with pytest.raises(VramscopeError, match="2 different things"):
        declared_batch_size()
    del first
    gc.collect()
    found = declared_batch_size()
    assert found is not None
    assert found is not kept
    with pytest.raises(VramscopeError, match="is gone"):
        kept.check_size()


@pytest.mark.parametrize("nonsense", [None, 8, "loader", object()])
def test_nonsense_raises_nothing_and_is_refused_later(nonsense: Any) -> None:
    with pytest.raises(VramscopeError):
        vramscope.batch_size(nonsense).check_size()
