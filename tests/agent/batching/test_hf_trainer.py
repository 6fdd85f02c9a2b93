"""What the Trainer of transformers counts once decides what can be done; its stack tells it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.batching.accumulation import Batches, Change
from vramscope.batching.hf_epochs import Windows
from vramscope.batching.hf_trainer import HfTrainer, Progress, hf_trainer
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


class LaterTrainer(Trainer):
    """One that tells each epoch its count."""

    def __init__(self, accumulation: int = 1) -> None:
        super().__init__(accumulation)
        loader = type("Loader", (), {})()
        self.callback_handler = SimpleNamespace(train_dataloader=loader)

    def _run_epoch(self, *, train_dataloader: Any, steps_in_epoch: int) -> None:
        """An epoch."""


def made(expected: int = 12, updates: int = 12) -> tuple[Any, HfTrainer]:
    trainer: Any = Trainer()
    return trainer, HfTrainer(trainer, Progress(expected, updates))


def made_later(
    accumulation: int = 1, expected: int = 13, trained: int = 4, batches: int = 4
) -> tuple[Any, HfTrainer]:
    """One whose epoch has so many steps behind it."""
    trainer: Any = LaterTrainer(accumulation)
    updates, stepped = -(-expected // accumulation), trained // accumulation
    return trainer, HfTrainer(trainer, Progress(expected, updates, trained, stepped), batches)


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


@pytest.mark.parametrize(("drawn", "begin"), [(4, 5), (5, 5), (6, 7), (12, 13)])
def test_windows_begin_so_that_its_own_step_ends_one(drawn: int, begin: int) -> None:
    trainer, accumulation = made_later()

    def count(at: int) -> int:
        return at + 2 * (13 - at)

    assert accumulation.first_batch(drawn, 1, 2, count) == begin
    wanted = change(2, begin, count(begin), 26)
    accumulation.check(wanted)
    accumulation.set(wanted)
    windows = trainer.args.gradient_accumulation_steps
    steps = [n for n in range(begin + 1, count(begin) + 1) if n % windows == 0]
    assert 13 in (begin, *steps)
    assert len(steps) == 13 - begin


def test_where_it_can_end_none_the_change_is_refused_for_this_epoch() -> None:
    _, accumulation = made_later(accumulation=2)
    assert accumulation.first_batch(4, 2, 4, lambda at: 26 - at) == 4
    with pytest.raises(VramscopeError, match="batch 13 of this epoch in any case"):
        accumulation.check(change(4, 4, 22, 26))
    accumulation.check(change(4, 0, 26, 26))  # of the next epoch


def test_the_last_of_fewer_batches_is_stepped_too() -> None:
    trainer, accumulation = made_later(accumulation=4, expected=26)
    wanted = Change(8, 2, Batches(4, 15, 13))
    accumulation.check(wanted)
    accumulation.set(wanted)
    windows = trainer.args.gradient_accumulation_steps
    assert [n for n in range(5, 16) if n % windows == 0] == [6, 8, 10, 12, 14, 15]


def test_steps_of_an_epoch_that_was_changed_before_are_counted_as_they_were() -> None:
    # After 4 batches of one step each came 4 of two: 6 steps, 8 batches.
    trainer = LaterTrainer()
    trainer.args.gradient_accumulation_steps = Windows(2, 4, 20)
    accumulation = HfTrainer(trainer, Progress(12, 12, 8, 6), 8)
    accumulation.check(Change(8, 1, Batches(8, 14, 12)))
    with pytest.raises(VramscopeError, match="would need 13 optimizer steps"):
        accumulation.check(Change(8, 1, Batches(8, 15, 12)))


def test_a_resumed_epoch_begins_in_the_middle_for_the_trainer_alone() -> None:
    trainer, accumulation = made_later(accumulation=2, expected=20, trained=12, batches=4)
    assert accumulation.offset == 8
    accumulation.set(change(4, 4, 20, 40))
    windows = trainer.args.gradient_accumulation_steps
    assert [n for n in range(13, 29) if n % windows == 0] == [16, 20, 24, 28]


def test_deepspeed_has_an_accumulation_of_its_own() -> None:
    trainer, accumulation = made()
    trainer.accelerator.distributed_type = "DistributedType.DEEPSPEED"
    with pytest.raises(VramscopeError, match="DEEPSPEED"):
        accumulation.check(change(2, 4, 20, 24))


def test_without_one_on_the_stack_there_is_none() -> None:
    assert hf_trainer() is None
