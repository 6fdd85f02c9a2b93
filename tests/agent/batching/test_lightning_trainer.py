"""What Lightning counts once is changed with its accumulation, or the change is refused."""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace
from typing import Any

import pytest

from vramscope.batching.accumulation import Batches, Change
from vramscope.batching.lightning_trainer import LightningTrainer, lightning_trainer
from vramscope_protocol.errors import VramscopeError

CHANGE = Change(4, 2, Batches(4, 20, 24))


class Callback:
    """Lightning's base class."""


def made(**changes: Any) -> Any:
    """A Trainer that has fetched 4 of 12 batches."""
    loader = SimpleNamespace(flattened=[object()], limits=[12])
    fetcher = SimpleNamespace(fetched=4, length=12, done=False, batches=[1])
    loop = SimpleNamespace(
        max_batches=12,
        _combined_loader=loader,
        _data_fetcher=fetcher,
        epoch_loop=SimpleNamespace(batch_progress=SimpleNamespace(is_last_batch=False)),
    )
    trainer = SimpleNamespace(
        accumulate_grad_batches=1,
        fit_loop=loop,
        lightning_module=SimpleNamespace(automatic_optimization=True),
        limit_train_batches=1.0,
        overfit_batches=0.0,
        strategy=SimpleNamespace(),
        callbacks=[],
        val_check_batch=12,
        val_check_interval=1.0,
    )
    trainer.__dict__.update(changes)
    return trainer


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("made_lightning.callbacks")
    module.__dict__["Callback"] = Callback
    monkeypatch.setitem(sys.modules, "made_lightning", types.ModuleType("made_lightning"))
    monkeypatch.setitem(sys.modules, "made_lightning.callbacks", module)


def test_this_epoch_is_counted_anew_and_the_next_one_once_more() -> None:
    trainer = made()
    accumulation = LightningTrainer(trainer, "made_lightning")
    assert (accumulation.value, accumulation.ahead) == (1, 1)
    accumulation.check(CHANGE)
    accumulation.set(CHANGE)
    loop = trainer.fit_loop
    assert (trainer.accumulate_grad_batches, loop.max_batches) == (2, 20)
    assert (loop._data_fetcher.length, loop._data_fetcher.done) == (20, False)
    assert (loop._combined_loader.limits, trainer.val_check_batch) == ([20], 20)
    (next_epoch,) = trainer.callbacks
    assert isinstance(next_epoch, Callback)
    next_epoch.on_train_epoch_start(trainer, None)  # type: ignore[attr-defined]
    assert (loop.max_batches, loop._combined_loader.limits) == (24, [24])
    assert (trainer.val_check_batch, trainer.callbacks) == (24, [])


def test_a_second_change_is_not_undone_by_the_first_ones_next_epoch() -> None:
    trainer = made()
    accumulation = LightningTrainer(trainer, "made_lightning")
    accumulation.set(CHANGE)
    accumulation.set(Change(8, 1, Batches(8, 14, 12)))
    for callback in list(trainer.callbacks):
        callback.on_train_epoch_start(trainer, None)
    assert trainer.fit_loop.max_batches == 12
    # Also where the epoch of both has as many batches, or as many as the next one.
    for running, later in ((20, 12), (20, 20)):
        accumulation.set(CHANGE)
        accumulation.set(Change(8, 1, Batches(8, running, later)))
        for callback in list(trainer.callbacks):
            callback.on_train_epoch_start(trainer, None)
        assert (trainer.fit_loop.max_batches, trainer.callbacks) == (later, [])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"limit_train_batches": 10}, "limit_train_batches"),
        ({"overfit_batches": 3}, "overfit_batches"),
        ({"strategy": SimpleNamespace(handles_gradient_accumulation=True)}, "fixed at start"),
        ({"lightning_module": SimpleNamespace(automatic_optimization=False)}, "by hand"),
        (
            {"callbacks": [type("GradientAccumulationScheduler", (), {})()]},
            "sets accumulation at each epoch",
        ),
    ],
)
def test_what_it_cannot_count_is_refused(changes: dict[str, Any], reason: str) -> None:
    trainer = made(**changes)
    with pytest.raises(VramscopeError, match=reason):
        LightningTrainer(trainer, "made_lightning").check(CHANGE)
    assert trainer.fit_loop.max_batches == 12


def test_several_loaders_and_unknown_lengths_are_refused() -> None:
    several, unknown = made(), made()
    several.fit_loop._combined_loader.flattened = [object(), object()]
    with pytest.raises(VramscopeError, match="several loaders"):
        LightningTrainer(several, "made_lightning").check(CHANGE)
    with pytest.raises(VramscopeError, match="nobody knows how many batches"):
        LightningTrainer(unknown, "made_lightning").check(Change(4, 2, Batches(4, None, None)))


def test_without_one_on_the_stack_there_is_none() -> None:
    assert lightning_trainer() is None
