"""The modules of a model by path, with the bytes of their own tensors."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from vramscope.modules.module_tree import ModuleTree

torch = pytest.importorskip("torch")


def model() -> Any:
    return torch.nn.Sequential(
        torch.nn.Embedding(10, 4),
        torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)),
        torch.nn.Linear(4, 10, bias=False),
    )


def test_paths_parents_and_bytes_are_those_of_the_model() -> None:
    tree = ModuleTree()
    tree.add(model())
    rows = [(e.path, e.type_name, e.parent, e.parameters_bytes) for e in tree.entries]
    assert rows == [
        ("Sequential", "Sequential", None, 0),
        ("0", "Embedding", 0, 160),
        ("1", "Sequential", 0, 0),
        ("1.0", "Linear", 2, 80),
        ("1.1", "BatchNorm1d", 2, 32),
        ("2", "Linear", 0, 160),
    ]
    # Running mean and variance, and how many batches were seen.
    assert tree.entries[4].buffers_bytes == 16 + 16 + 8
    assert tree.lineage(3) == (3, 2, 0)


def test_tied_weights_count_once() -> None:
    tied = model()
    tied[2].weight = tied[0].weight
    tree = ModuleTree()
    tree.add(tied)
    assert [e.parameters_bytes for e in tree.entries if e.path in ("0", "2")] == [160, 0]


def test_a_second_model_has_its_name_in_its_paths_and_shares_nothing_with_the_first() -> None:
    first, second, third = model(), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    tree = ModuleTree()
    for root in (first, second, third):
        tree.add(root)
    assert [e.path for e in tree.entries[-2:]] == ["Linear", "Linear#2"]
    assert [e.parent for e in tree.entries[-2:]] == [None, None]


def test_a_model_around_one_that_is_known_takes_its_other_modules_only() -> None:
    inner = torch.nn.Linear(2, 2)
    outer = torch.nn.Sequential(inner, torch.nn.Linear(2, 2))
    tree = ModuleTree()
    tree.add(inner)
    tree.add(outer)
    assert [e.path for e in tree.entries] == ["Linear", "Sequential", "Sequential.1"]
    assert tree.position_of(inner) == 0


def test_it_keeps_no_module_alive_and_takes_no_other_one_for_it() -> None:
    tree = ModuleTree()
    root = model()
    tree.add(root)
    numbers = [id(module) for module in root.modules()]
    del root
    gc.collect()
    # Objects at the same addresses, sooner or later.
    others = [torch.nn.Identity() for _ in range(200)]
    assert all(tree.position_of(each) is None for each in others if id(each) in numbers)


def test_a_tensor_without_storage_is_passed_over() -> None:
    lazy = torch.nn.LazyLinear(4)
    tree = ModuleTree()
    tree.add(torch.nn.Sequential(lazy, torch.nn.Linear(2, 2)))
    assert [e.parameters_bytes for e in tree.entries] == [0, 0, 24]


class Gathering(torch.nn.Linear):  # type: ignore[misc, name-defined]  # torch is untyped here
    """Has to be called on all ranks at once, say."""

    def _refuse(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("called by the agent")

    parameters = named_parameters = buffers = named_modules = named_children = _refuse


def test_no_method_of_a_model_is_called() -> None:
    tree = ModuleTree()
    tree.add(torch.nn.Sequential(Gathering(2, 2)))
    assert [(e.path, e.parameters_bytes) for e in tree.entries] == [("Sequential", 0), ("0", 24)]


def test_a_subclass_does_not_see_that_its_tensors_are_looked_at() -> None:
    calls: list[Any] = []

    class Watching(torch.nn.Parameter):  # type: ignore[misc, name-defined]  # torch is untyped here
        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), options: Any = None
        ) -> Any:
            calls.append(function)
            return super().__torch_function__(function, types, args, options or {})

    module = torch.nn.Linear(2, 2, bias=False)
    module.weight = Watching(torch.ones(2, 2))
    calls.clear()
    tree = ModuleTree()
    tree.add(module)
    assert calls == []
    assert tree.entries[0].parameters_bytes == 16


@pytest.mark.skipif(not hasattr(torch._C, "_is_cow_tensor"), reason="no lazy clones")
def test_a_lazy_clone_stays_lazy() -> None:
    module = torch.nn.Module()
    original = torch.ones(4)
    module.register_buffer("clone", torch._lazy_clone(original))
    ModuleTree().add(module)
    assert torch._C._is_cow_tensor(module.clone)
