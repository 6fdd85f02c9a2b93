"""What holds the memory of a tensor is found, and nothing is computed to find it."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from vramscope.tensors.leaves import Leaves  # noqa: E402

pytestmark = pytest.mark.torch


class Counting(TorchDispatchMode):  # type: ignore[misc]  # torch is not type-checked
    """Notes every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.operations.append(str(func))
        return func(*args, **(kwargs or {}))


class Wrapper(torch.Tensor):  # type: ignore[misc, name-defined]
    """A tensor of two others, as quantised tensors are."""

    @staticmethod
    def __new__(cls, data: Any, scale: Any) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=torch.float32)
        made.data_, made.scale = data, scale
        return made

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["data_", "scale"], None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} ran")


class Subclass(torch.nn.Parameter):  # type: ignore[misc, name-defined]
    """A parameter with tensors beside it, as 4-bit parameters are."""


def coo() -> Any:
    indices = torch.tensor([[0, 1]])
    return torch.sparse_coo_tensor(indices, torch.ones(2), (3,), check_invariants=True)


def found_in(value: Any) -> list[Any]:
    found: list[Any] = []
    with torch._C.DisableTorchFunction(), Counting() as mode:
        Leaves(found.append).of_value(value)
    assert mode.operations == []
    return found


def is_found(value: Any, *tensors: Any) -> bool:
    found = found_in(value)
    return {id(each) for each in found} == {id(each) for each in tensors}


def test_a_plain_tensor_is_its_own_leaf() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    assert is_found(weight, weight)


def test_containers_are_looked_into_at_every_level() -> None:
    a, b, c, d = (torch.ones(2) for _ in range(4))

    @dataclasses.dataclass
    class Moments:
        first: Any
        count: int = 3

    assert is_found({"a": a, "b": [b, (c, {"d": Moments(d)})], "step": 4, "x": None}, a, b, c, d)


def test_what_is_no_container_is_left_alone() -> None:
    kept = torch.ones(2)
    holder = torch.nn.Linear(2, 2)
    proxy = weakref.proxy(holder)
    for value in ("text", b"bytes", 3, None, holder, lambda: kept, type, torch, proxy):
        assert found_in(value) == []
    del holder  # now the proxy raises, whatever it is asked
    assert found_in(proxy) == []


def test_containers_that_hold_themselves_come_to_an_end() -> None:
    loop: list[Any] = [torch.ones(2)]
    loop.append(loop)
    assert {id(each) for each in found_in(loop)} == {id(loop[0])}


def test_a_wrapper_is_what_it_wraps() -> None:
    data, scale, inner_scale = torch.ones(4), torch.ones(1), torch.ones(1)
    assert is_found(Wrapper(data, scale), data, scale)
    assert is_found(Wrapper(Wrapper(data, inner_scale), scale), data, scale, inner_scale)


def test_a_tensor_of_a_tracing_mode_has_no_memory() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(2)
    assert found_in(fake) == []


def test_a_subclass_with_memory_of_its_own_counts_with_what_it_carries() -> None:
    weight = Subclass(torch.ones(2))
    weight.scales = absmax = torch.ones(1)
    weight.module = torch.nn.Linear(2, 2)  # as bitsandbytes has it
    assert is_found(weight, weight, absmax)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_parts_of_sparse_tensors_count() -> None:
    found: list[Any] = []
    sparse = coo()
    Leaves(found.append).of_tensor(sparse)
    assert sorted(each.numel() for each in found) == [2, 2]
    assert not sparse.is_coalesced()
    found.clear()
    with torch.sparse.check_sparse_tensor_invariants():
        csr = torch.eye(3).to_sparse_csr()
    Leaves(found.append).of_tensor(csr)
    assert sorted(each.numel() for each in found) == [3, 3, 4]


def test_under_a_mode_of_the_job_a_sparse_tensor_is_left_alone() -> None:
    sparse = coo()
    assert found_in(sparse) == []


def test_a_parameter_that_waits_for_its_shape_is_no_error() -> None:
    lazy = torch.nn.LazyLinear(3)
    assert {id(each) for each in found_in(lazy.weight)} == {id(lazy.weight)}


def test_objects_that_refer_to_all_others_are_looked_into_once_each() -> None:
    class Kept:
        """What an optimizer keeps for a parameter, which knows the others by their optimizer."""

        def __init__(self, states: dict[int, Any]) -> None:
            self.states = states
            self.factor = torch.ones(2)

    states: dict[int, Any] = {}
    for number in range(100):
        states[number] = Kept(states)
    found: list[Any] = []
    leaves = Leaves(found.append)
    for state in states.values():
        leaves.of_value(state)
    assert len(found) <= 6 * len(states)  # once for each depth at most
    assert {id(each) for each in found} == {id(state.factor) for state in states.values()}
