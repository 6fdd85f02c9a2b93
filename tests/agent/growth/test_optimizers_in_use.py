"""Who steps lately is known, and not kept alive by it."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope.growth import optimizers_in_use as module
from vramscope.growth.optimizers_in_use import IDLE_STEPS, OptimizersInUse, tensors_in_use


class Optimizer:
    """Has what is asked of PyTorch's."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *parameters: Any) -> None:
        self.param_groups = [{"params": list(parameters)}]
        self.state: Any = {number: {"exp_avg": each} for number, each in enumerate(parameters)}


class Steps:
    def __init__(self) -> None:
        self.step = 0
        self.optimizers = OptimizersInUse(lambda: self.step)


def test_those_that_have_stepped_lately() -> None:
    steps = Steps()
    first, second = Optimizer(), Optimizer()
    steps.optimizers.saw_optimizer(first)
    steps.step = IDLE_STEPS
    steps.optimizers.saw_optimizer(second)
    assert [id(each) for each in steps.optimizers.in_use()] == [id(first), id(second)]
    steps.step += 1
    assert [id(each) for each in steps.optimizers.in_use()] == [id(second)]


def test_one_that_is_gone_is_not_there() -> None:
    steps = Steps()
    optimizer: Optimizer | None = Optimizer()
    steps.optimizers.saw_optimizer(optimizer)
    optimizer = None
    assert steps.optimizers.in_use() == []


def test_no_more_are_noted_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_KNOWN", 3)
    steps = Steps()
    many = [Optimizer() for _ in range(10)]
    for optimizer in many:
        steps.optimizers.saw_optimizer(optimizer)
    assert 0 < len(steps.optimizers.in_use()) <= 3


def test_parameters_and_what_is_kept_for_each() -> None:
    one, two = object(), object()
    optimizer = Optimizer(one)
    optimizer.state["odd"] = two  # no dictionary
    parameters, states = tensors_in_use([optimizer])
    assert parameters == {id(one)}
    assert states == {id(one), id(two)}
