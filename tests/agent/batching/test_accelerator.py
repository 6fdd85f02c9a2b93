"""The Accelerator of a loop is found near it, and asked whether it accumulates."""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.batching.accelerator import AcceleratorLoop, accelerator_loop
from vramscope.batching.accumulation import Batches, Change
from vramscope_protocol.errors import VramscopeError

TWO = Change(4, 2, Batches(3, 20, 24))


class Accelerator:
    """As far as it matters."""

    def __init__(self, step: int = 3, accumulation: int = 1, end: bool = False) -> None:
        self.step = step
        self.gradient_accumulation_steps = accumulation
        self.gradient_state = SimpleNamespace(end_of_dataloader=end)
        self.distributed_type = "DistributedType.NO"


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    made = types.ModuleType("accelerate.accelerator")
    made.__dict__["Accelerator"] = Accelerator
    monkeypatch.setitem(sys.modules, "accelerate.accelerator", made)


def test_it_is_a_variable_of_a_running_function_or_an_attribute_of_one() -> None:
    assert accelerator_loop(3) is None

    def with_variable() -> Any:
        accelerator = Accelerator(accumulation=5)
        return accelerator_loop(accelerator.step)

    class Runner:
        def __init__(self) -> None:
            self.accelerator = Accelerator(accumulation=6)

        def run(self) -> Any:
            return accelerator_loop(3)

    assert (with_variable().value, Runner().run().value) == (5, 6)


def test_its_count_may_be_ahead_of_the_epochs() -> None:
    assert AcceleratorLoop(Accelerator(step=5), 3).offset == 2
    assert AcceleratorLoop(Accelerator(step=0, end=True), 3).offset == 0


def test_a_loop_without_accumulate_keeps_its_steps() -> None:
    loop = AcceleratorLoop(Accelerator(step=0), 3)
    loop.check(Change(4, 1, Batches(3, 20, 24)))
    with pytest.raises(VramscopeError, match=r"does not use accelerator.accumulate\(\)"):
        loop.check(TWO)
    AcceleratorLoop(Accelerator(step=0, end=True), 3).check(TWO)
    AcceleratorLoop(Accelerator(step=0, accumulation=4), 3).check(TWO)


def test_deepspeed_has_an_accumulation_of_its_own() -> None:
    accelerator = Accelerator()
    accelerator.distributed_type = "DistributedType.DEEPSPEED"
    with pytest.raises(VramscopeError, match="DEEPSPEED"):
        AcceleratorLoop(accelerator, 3).check(TWO)


def test_the_loss_is_divided_by_the_new_number_at_once() -> None:
    accelerator = Accelerator()
    AcceleratorLoop(accelerator, 3).set(TWO)
    assert accelerator.gradient_accumulation_steps == 2
