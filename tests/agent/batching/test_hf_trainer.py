"""What the Trainer of transformers counts once decides what can be done; its stack tells it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.batching.accumulation import Batches, Change
from vramscope.batching.hf_trainer import HfTrainer, hf_trainer
from vramscope_protocol.errors import VramscopeError


class Trainer:
    """As far as it matters."""

    def __init__(self, accumulation: int = 1) -> None:
        self.args = SimpleNamespace(gradient_accumulation_steps=accumulation)
        self.state = SimpleNamespace(train_batch_size=8)
        self.accelerator = SimpleNamespace(
            distributed_type="DistributedType.NO", gradient_accumulation_steps=1
        )
        self._train_batch_size = 8

    def get_batch_samples(self, iterator: Any, batches: int, device: str) -> tuple[int, str]:
        """How many batches it takes."""
        return batches, device


def made(expected: int = 12, updates: int = 12) -> tuple[Any, HfTrainer]:
    trainer: Any = Trainer()
    return trainer, HfTrainer(trainer, expected, updates)


def change(accumulation: int, before: int, running: int | None, later: int | None) -> Change:
    return Change(4, accumulation, Batches(before, running, later))


def test_accelerate_is_not_told_or_it_would_divide_the_loss_again() -> None:
    trainer, accumulation = made()
    accumulation.set(change(2, 4, 20, 24))
    assert trainer.args.gradient_accumulation_steps == accumulation.value == 2
    assert trainer.accelerator.gradient_accumulation_steps == 1
    assert (trainer._train_batch_size, trainer.state.train_batch_size) == (4, 4)


def test_the_last_step_of_an_epoch_takes_a_whole_window() -> None:
    trainer, accumulation = made()
    for _ in range(2):
        accumulation.set(change(2, 4, 20, 24))
    assert trainer.get_batch_samples(iter(()), 1, "cpu") == (2, "cpu")


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (change(5, 4, 44, 60), "divides 12"),
        (change(2, 4, 9, 6), "left without a step"),
        (change(2, 4, 22, 26), "would need 13 optimizer steps"),
        (change(2, 4, 20, 26), "would need 13 optimizer steps"),
        (change(1, 4, 20, 24), "would need 20 optimizer steps"),
        (change(5, 4, None, None), "divides 12"),
    ],
)
def test_what_would_end_a_window_or_an_epoch_wrongly_is_refused(
    wanted: Change, reason: str
) -> None:
    trainer, accumulation = made()
    with pytest.raises(VramscopeError, match=reason):
        accumulation.check(wanted)
    assert trainer.args.gradient_accumulation_steps == 1


def test_what_fits_is_not() -> None:
    _, accumulation = made()
    for wanted in (change(2, 4, 20, 24), change(1, 4, 8, 6), change(3, 3, 30, 36)):
        accumulation.check(wanted)


def test_deepspeed_has_an_accumulation_of_its_own() -> None:
    trainer, accumulation = made()
    trainer.accelerator.distributed_type = "DistributedType.DEEPSPEED"
    with pytest.raises(VramscopeError, match="DEEPSPEED"):
        accumulation.check(change(2, 4, 20, 24))


def test_without_one_on_the_stack_there_is_none() -> None:
    assert hf_trainer() is None
