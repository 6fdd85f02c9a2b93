"""Windows that begin in the middle of an epoch, and epochs that are told their own count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from vramscope.batching.hf_epochs import Windows, can_count_anew, count_anew, windows_begin


class Trainer:
    """As far as it matters: what its epochs are told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []
        self.args = SimpleNamespace(gradient_accumulation_steps=1)
        self.loader = self.train()

    def train(self) -> Any:
        """Another call has another loader."""
        loader = type("Loader", (), {})()
        self.callback_handler = SimpleNamespace(train_dataloader=loader)
        return loader

    def _run_epoch(self, *, train_dataloader: Any, steps_in_epoch: int) -> None:
        self.told.append((steps_in_epoch, int(self.args.gradient_accumulation_steps)))

    def epoch(self, loader: Any) -> None:
        """As ``train`` runs it."""
        self._run_epoch(train_dataloader=loader, steps_in_epoch=9)


def test_windows_begin_where_they_are_told_to_and_the_last_one_may_be_short() -> None:
    windows = Windows(4, 5, 15)
    steps = [batches for batches in range(6, 16) if batches % windows == 0]
    assert steps == [9, 13, 15]
    assert [batch for batch in range(5, 15) if batch % windows == 0] == [5, 9, 13]
    assert (windows, windows_begin(windows), windows_begin(4)) == (4, 5, 0)
    assert 15 % Windows(4, 5, None) != 0


def test_later_epochs_expect_what_they_will_have_with_a_plain_accumulation() -> None:
    trainer = Trainer()
    assert can_count_anew(trainer)
    trainer.epoch(trainer.loader)
    trainer.args.gradient_accumulation_steps = Windows(2, 5, 17)
    count_anew(trainer, 18, 2)
    trainer.epoch(trainer.loader)
    assert type(trainer.args.gradient_accumulation_steps) is int
    count_anew(trainer, None, 3)
    trainer.epoch(trainer.loader)
    assert trainer.told == [(9, 1), (18, 2), (9, 3)]
    assert can_count_anew(trainer)


def test_training_once_more_counts_for_itself() -> None:
    trainer = Trainer()
    count_anew(trainer, 18, 2)
    trainer.epoch(trainer.train())
    assert trainer.told == [(9, 1)]


def test_releases_that_tell_an_epoch_nothing_are_known() -> None:
    assert not can_count_anew(SimpleNamespace())
    assert not can_count_anew(SimpleNamespace(_run_epoch=lambda model, epoch: None))
