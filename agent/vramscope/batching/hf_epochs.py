"""Batches of an epoch and windows of its steps in the Trainer of transformers, after a change.

The Trainer steps where ``(batch + 1) % args.gradient_accumulation_steps`` is zero, so its windows
begin with the first batch of an epoch. After a change in the middle they begin with another one.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any, Final

from vramscope.guard import guarded

_RUN_EPOCH: Final = "_run_epoch"
_BATCHES: Final = "steps_in_epoch"
_LOADER: Final = "train_dataloader"
_COUNTS: Final = "_vramscope_counts"


class Windows(int):
    """An accumulation whose windows begin with a certain batch; one may end early.

    Args:
        accumulation: batches of one step.
        begin: the batch of the epoch that the first of them begins with.
        last: batches of the epoch, after which a step is made in any case; ``None`` if unknown.
    """

    begin: int
    last: int | None

    def __new__(cls, accumulation: int, begin: int, last: int | None) -> Windows:
        made = super().__new__(cls, accumulation)
        made.begin = begin
        made.last = last
        return made

    def __rmod__(self, batches: int) -> int:
        """Batches since the last step, after so many of the epoch."""
        # Asked before the ``%`` of the number on the left, which is a plain one.
        return 0 if batches == self.last else (batches - self.begin) % int(self)


def windows_begin(accumulation: int) -> int:
    """The batch that the windows of an accumulation begin with."""
    return accumulation.begin if isinstance(accumulation, Windows) else 0


def can_count_anew(trainer: Any) -> bool:
    """Whether this release tells each epoch anew how many batches it has."""
    with guarded("batch size"):
        run = getattr(trainer, _RUN_EPOCH, None)
        if run is not None and hasattr(run, _COUNTS):
            return True
        names = () if run is None else tuple(inspect.signature(run).parameters)
        return _BATCHES in names and _LOADER in names
    return False


def count_anew(trainer: Any, batches: int | None, accumulation: int) -> None:
    """Have later epochs expect so many batches; as many as before if that is not known.

    Args:
        trainer: one that :func:`can_count_anew`.
        batches: of each later epoch.
        accumulation: of these.
    """
    run: Callable[..., Any] = trainer.__dict__.get(_RUN_EPOCH) or getattr(trainer, _RUN_EPOCH)
    counts: _Counts | None = getattr(run, _COUNTS, None)
    if counts is None:
        counts = _Counts()
        trainer.__dict__[_RUN_EPOCH] = _counted(trainer, run, counts)
    # Another call of ``train`` counts for itself.
    counts.loader = weakref.ref(trainer.callback_handler.train_dataloader)
    counts.batches, counts.accumulation = batches, accumulation


class _Counts:
    def __init__(self) -> None:
        self.loader: Callable[[], Any] = lambda: None
        self.batches: int | None = None
        self.accumulation = 1

    def of_epoch(self, trainer: Any, named: dict[str, Any]) -> dict[str, Any]:
        """What the Trainer has to be told of an epoch that begins."""
        if named.get(_LOADER) is None or named[_LOADER] is not self.loader():
            return {}
        trainer.args.gradient_accumulation_steps = self.accumulation
        return {} if self.batches is None else {_BATCHES: self.batches}


def _counted(trainer: Any, run: Callable[..., Any], counts: _Counts) -> Callable[..., Any]:
    owner = weakref.ref(trainer)

    @functools.wraps(run)
    def run_epoch(*arguments: Any, **named: Any) -> Any:
        told: dict[str, Any] = {}
        with guarded("batch size"):
            told = counts.of_epoch(owner(), named)
        return run(*arguments, **{**named, **told})

    run_epoch.__dict__[_COUNTS] = counts
    return run_epoch
