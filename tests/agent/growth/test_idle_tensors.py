"""Tensors that no step works with are told by the name of the model, the optimizer or the list."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from vramscope.growth import idle_tensors as module  # noqa: E402
from vramscope.growth.idle_tensors import IdleGroup, IdleTensors  # noqa: E402
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
