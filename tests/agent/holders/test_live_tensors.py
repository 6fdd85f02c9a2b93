"""Tensors are found by their classes, in words and by address."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.holders import live_tensors  # noqa: E402
from vramscope.holders.live_tensors import (  # noqa: E402
    TensorClasses,
    looking,
    tensor_words,
    tensors_at,
    words_of,
)
from vramscope.holders.time_box import TimeBox  # noqa: E402

pytestmark = pytest.mark.torch


class Sub(torch.Tensor):  # type: ignore[misc, name-defined]  # torch is untyped here
    """Has a storage, and refuses to be looked at."""

    @classmethod
    def __torch_function__(cls, *args: Any, **options: Any) -> Any:
        raise AssertionError("the job's tensor was asked")


class Wrapper(torch.Tensor):  # type: ignore[misc, name-defined]  # torch is untyped here
    """Has none."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, *args: Any, **options: Any) -> Any:
        raise AssertionError("the job's tensor was used")


def place(tensor: Any) -> tuple[int, int] | None:
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def test_which_objects_are_tensors_with_a_storage() -> None:
    classes = TensorClasses()
    value = torch.ones(2)
    dense = [value, torch.nn.Parameter(value), value.as_subclass(Sub)]
    others = [value.to_sparse(), Wrapper(value), [value], weakref.proxy(value)]
    with looking():
        assert all(map(classes.is_plain, dense))
        assert not any(map(classes.is_plain, others))


def test_tensors_by_their_address() -> None:
    wanted, other = torch.ones(10), torch.ones(10)
    found = tensors_at({wanted.data_ptr()}, place, TimeBox(60))
    assert found[wanted.data_ptr()].data_ptr() == wanted.data_ptr()
    assert other.data_ptr() not in found
    assert tensors_at({wanted.data_ptr()}, place, TimeBox(0)) == {}


def test_words() -> None:
    value = torch.ones(512, 1024)
    assert tensor_words(value) == "float32[512, 1024]"
    assert tensor_words(torch.tensor(1)) == "int64[]"
    assert tensor_words(value.as_subclass(Sub)) == "float32[512, 1024]"
    tensors = [torch.ones(1), torch.ones(2), torch.ones(2)]
    assert words_of(tensors) == ["float32[2]", "float32[1]"]
    assert words_of(tensors, 1) == ["float32[2]"]


def test_the_search_by_address_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_tensors, "_CHUNK", 10)
    looked: list[int] = []

    class Box(TimeBox):
        @property
        def is_over(self) -> bool:
            looked.append(1)
            return len(looked) > 3

    assert tensors_at({-1}, lambda tensor: None, Box(1.0)) == {}
    assert len(looked) == 4


def test_what_only_wraps_another_inside_of_a_transformation_is_none() -> None:
    seen: list[bool] = []

    def job(value: Any) -> Any:
        doubled = value * 2
        with looking():
            seen.append(TensorClasses().is_plain(doubled))
        return doubled.sum()

    torch.func.vmap(job)(torch.ones(3, 2))
    torch.func.grad(job)(torch.ones(3))
    assert seen == [False, False]
