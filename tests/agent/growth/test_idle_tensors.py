"""Tensors that no step works with are told by the name of the model, the optimizer or the list."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.growth import idle_tensors as module  # noqa: E402
from vramscope.growth.idle_tensors import IdleGroup, IdleTensors, note_writes  # noqa: E402
from vramscope.growth.tensor_writes import WATCHED_STEPS  # noqa: E402
from vramscope.holders.live_tensors import TensorClasses, looking  # noqa: E402
from vramscope.holders.reach import Reach  # noqa: E402
from vramscope.holders.time_box import TimeBox  # noqa: E402

pytestmark = pytest.mark.torch

WIDTH = 601


def place(tensor: Any) -> tuple[int, int] | None:
    """Of the tensors of this file alone."""
    if WIDTH not in tuple(tensor.shape):
        return None
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


class Old(dict[int, int]):
    """All blocks are from before the first look."""

    def get(self, key: int, default: Any = None) -> Any:
        return -1


def idle(
    *optimizers: Any, births: dict[int, int] | None = None, limit_s: float = 60.0
) -> list[IdleGroup]:
    reach = Reach(60.0)
    classes = TensorClasses()
    with looking():
        reach.search(classes.is_plain)
        found = IdleTensors(reach, place, Old() if births is None else births, TimeBox(limit_s))
        groups = found.find(reach.found, optimizers)
    reach.clear()
    return groups


def stepped() -> tuple[Any, Any]:
    model = torch.nn.Linear(WIDTH, WIDTH, bias=False)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, WIDTH)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_a_model_that_is_trained_is_not_told() -> None:
    model, optimizer = stepped()
    assert idle(optimizer) == []
    assert model is not None


def test_one_that_is_not_is_told_with_its_optimizer() -> None:
    old_model, old_optimizer = stepped()
    groups = {group.category: group for group in idle()}
    assert groups["parameters"].holder.chain == ["old_model"]
    assert groups["gradients"].holder.chain == ["old_model"]
    assert groups["optimizer_state"].holder.chain == ["old_optimizer"]
    assert groups["optimizer_state"].count == 2
    assert groups["parameters"].tensors == [f"float32[{WIDTH}, {WIDTH}]"]
    assert old_model is not old_optimizer


def test_an_attribute_that_a_hook_has_left_on_a_model_that_is_trained() -> None:
    model, optimizer = stepped()
    model.input = torch.ones(WIDTH, WIDTH)
    (group,) = idle(optimizer)
    assert (group.holder.kind, group.holder.chain) == ("attribute", ["Linear.input"])
    assert group.category == ""


def test_what_a_forward_makes_anew_of_a_parameter_is_in_use() -> None:
    model = torch.nn.Linear(WIDTH, WIDTH, bias=False)
    prune = importlib.import_module("torch.nn.utils.prune")
    prune.l1_unstructured(model, "weight", amount=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, WIDTH)).sum().backward()
    optimizer.step()
    assert idle(optimizer) == []
    model.weight_norms = model.weight.detach().clone()  # of no parameter
    assert [group.holder.chain for group in idle(optimizer)] == [["Linear.weight_norms"]]


def test_an_average_of_pytorch_is_in_use_and_a_copy_of_a_model_is_not() -> None:
    model, optimizer = stepped()
    average = torch.optim.swa_utils.AveragedModel(model)
    assert idle(optimizer) == []
    copy = average.module
    del average
    assert [group.holder.chain for group in idle(optimizer)] == [["copy"]]
    assert copy is not None


def test_it_is_noted_what_is_written_to_and_after_few_steps_no_more_than_that() -> None:
    average, copy = [torch.ones(WIDTH, WIDTH)], [torch.ones(WIDTH, WIDTH)]
    groups = sorted(idle(), key=lambda group: group.holder.chain)
    assert [group.holder.chain[0] for group in groups] == ["average", "copy"]
    average[0].lerp_(copy[0], 0.1)
    note_writes(groups, 1)
    assert [group.is_written for group in groups] == [True, None]
    note_writes(groups, WATCHED_STEPS)
    assert [group.is_written for group in groups] == [True, False]


def test_what_came_lately_and_what_is_small_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"exp_avg": torch.ones(WIDTH, WIDTH)}
    assert len(idle()) == 1
    assert idle(births={state["exp_avg"].data_ptr(): 1}) == []
    monkeypatch.setattr(module, "LEAST_BYTES", 1 << 30)
    assert idle() == []


def test_members_of_a_list_have_its_name_and_attributes_have_their_own() -> None:
    kept = [torch.ones(WIDTH, 9) for _ in range(50)]
    model = torch.nn.Linear(WIDTH, 1)
    model.first, model.second = torch.ones(WIDTH, WIDTH), torch.ones(WIDTH, WIDTH)
    found = {group.holder.chain[-1]: group.count for group in idle()}
    assert found == {"list of 50": len(kept), "Linear.first": 1, "Linear.second": 1}


def test_names_are_looked_for_no_longer_than_is_allowed() -> None:
    state = {"exp_avg": torch.ones(WIDTH, WIDTH)}
    assert idle(limit_s=0.0) == []
    assert len(state) == 1
