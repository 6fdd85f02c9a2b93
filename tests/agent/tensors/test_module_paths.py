from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.tensors.module_paths import named_places  # noqa: E402

pytestmark = pytest.mark.torch

nn = torch.nn


def names(*roots: Any) -> list[str]:
    """Names of all that is found when every module is known, in any order."""
    modules = [module for root in roots for module in root.modules()]
    return [place.name() for place in named_places(reversed(modules))]


class Head(nn.Module):  # type: ignore[misc, name-defined]  # torch is not type-checked
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)


def test_paths_are_those_of_named_parameters_and_named_buffers() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"head": Head()}))
    expected = [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
    assert sorted(names(model)) == sorted(expected)
    kinds = {place.name(): place.is_parameter for place in named_places(model.modules())}
    assert kinds["1.head.norm.running_mean"] is False
    assert kinds["1.head.norm.weight"] is True


def test_paths_of_several_models_begin_with_their_class() -> None:
    found = names(nn.Linear(1, 1), Head(), nn.Linear(1, 1, bias=False))
    assert "Head.norm.weight" in found
    assert {"Linear.weight", "Linear.bias", "Linear (2).weight"} <= set(found) or {
        "Linear.weight",
        "Linear (2).bias",
        "Linear (2).weight",
    } <= set(found)


def test_a_model_without_tensors_changes_no_path() -> None:
    assert names(nn.Sequential(nn.ReLU()), nn.Linear(1, 1)) == ["weight", "bias"]


def test_a_tensor_in_two_places_is_there_once() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    assert names(model) == ["0.weight"]


def test_wrappers_do_not_show() -> None:
    inner = nn.Sequential(nn.Linear(1, 1, bias=False))
    compiled = torch.compile(inner, backend="eager")
    assert names(compiled) == ["0.weight"]

    class DistributedDataParallel(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

    assert names(DistributedDataParallel(inner)) == ["0.weight"]


def test_modules_that_hold_each_other_are_found() -> None:
    a, b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    a.other, b.other = b, a
    assert len(named_places([a, b])) == 2


def test_no_module_has_no_tensors() -> None:
    assert named_places([]) == []
