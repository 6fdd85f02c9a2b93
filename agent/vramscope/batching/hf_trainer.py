"""Accumulation in the Trainer of Hugging Face transformers, found on the stack of training.

It reads ``args.gradient_accumulation_steps`` anew for each step, but counts the batches of an epoch
once and for all: it steps at that count, whatever there is to come, and takes only what is left of
an old window for the last step of an epoch. The latter is mended here. The former is avoided by
where windows begin, or met in the middle of one it is refused; later epochs are told their own
count. accelerate is told 1 by it, always, and must not divide again.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from msgspec import Struct

from vramscope.batching.accumulation import Change, conflict
from vramscope.batching.hf_epochs import Windows, can_count_anew, count_anew, windows_begin
from vramscope.batching.running_frames import variables
from vramscope.batching.windows import Count, FromTheFirst

_MODULE: Final = "transformers.trainer"
_LOOPS: Final = ("_run_epoch", "_inner_training_loop")
_COUNT: Final = "steps_in_epoch"
_TAKES_WHOLE_WINDOWS: Final = "_vramscope_takes_whole_windows"


class Progress(Struct, frozen=True):
    """What the Trainer has counted in the epoch that runs."""

    batches: int
    """Batches that it was to have."""
    updates: int
    """Optimizer steps that it makes at most."""
    trained: int | None = None
    """Batches that are trained on."""
    stepped: int | None = None
    """Optimizer steps of these."""


class HfTrainer(FromTheFirst):
    """The Trainer that trains now. Implements ``Accumulation``.

    Args:
        trainer: the Trainer.
        progress: in the epoch that runs.
        batches: of it that the loader has given to training; 0 if it is not known.
    """

    name = "the Trainer of transformers"
    ahead = 0

    def __init__(self, trainer: Any, progress: Progress, batches: int = 0) -> None:
        # A resumed epoch begins in the middle, for the Trainer alone.
        self.offset = (progress.trained or batches) - batches if batches else 0
        self._trainer = trainer
        self._progress = progress
        self._counts_anew = can_count_anew(trainer)

    @property
    def value(self) -> int:
        """Batches of one optimizer step now."""
        return int(self._trainer.args.gradient_accumulation_steps)

    def first_batch(self, drawn: int, now: int, then: int, count: Count) -> int:
        """With which batch a change may begin: where the Trainer's own step ends a window."""
        if not self._counts_anew:
            return super().first_batch(drawn, now, then, count)
        begin = windows_begin(self._trainer.args.gradient_accumulation_steps) - self.offset
        first = drawn + -(drawn - begin) % now
        for at in range(first, first + then * now, now):
            if self._ends_a_window(at, then, count(at)):
                return at
        return first

    def check(self, change: Change) -> None:
        """Whether every window of this epoch and of later ones ends where it should.

        Raises:
            VramscopeError: ``conflict``, one would not, with the reason.
        """
        kind = str(getattr(self._trainer.accelerator, "distributed_type", ""))
        if kind.rpartition(".")[2] in ("DEEPSPEED", "MEGATRON_LM"):
            raise conflict(
                f"{kind.rpartition('.')[2]} has an accumulation of its own, fixed at start"
            )
        if not hasattr(self._trainer, "get_batch_samples"):
            raise conflict("this version of transformers fetches batches in an unknown way")
        if self._counts_anew:
            self._check_step_at_the_count(change)
        else:
            self._check_whole_windows(change)
        self._check_updates(change)

    def set(self, change: Change) -> None:
        """Accumulate so from the next step on."""
        trainer, batches = self._trainer, change.batches
        trainer.args.gradient_accumulation_steps = change.accumulation
        if self._counts_anew:
            # A change between two epochs begins with the first batch of the next one.
            begin = batches.before + self.offset if batches.before else 0
            last = None if batches.running is None or not begin else batches.running + self.offset
            trainer.args.gradient_accumulation_steps = Windows(change.accumulation, begin, last)
            count_anew(trainer, batches.later, change.accumulation)
        trainer._train_batch_size = change.batch_size
        trainer.state.train_batch_size = change.batch_size
        take = trainer.get_batch_samples
        if hasattr(take, _TAKES_WHOLE_WINDOWS):
            return

        @functools.wraps(take)
        def take_whole_windows(iterator: Any, batches: int, *more: Any, **options: Any) -> Any:
            # Asked for fewer at the end of an epoch, by the count of before. There, it ends.
            return take(iterator, trainer.args.gradient_accumulation_steps, *more, **options)

        take_whole_windows.__dict__[_TAKES_WHOLE_WINDOWS] = True
        trainer.get_batch_samples = take_whole_windows

    def _ends_a_window(self, begin: int, accumulation: int, count: int | None) -> bool:
        """Whether the step that it makes at its count in any case is the end of a window."""
        expected = self._progress.batches - self.offset
        if expected <= begin or (count is not None and count <= expected):
            return True
        return (expected - begin) % accumulation == 0

    def _check_step_at_the_count(self, change: Change) -> None:
        begin, accumulation = change.batches.before, change.accumulation
        if begin and not self._ends_a_window(begin, accumulation, change.batches.running):
            expected = self._progress.batches
            raise conflict(
                f"the Trainer steps at batch {expected} of this epoch in any case, where no "
                f"step of {accumulation} batches can end after steps of {self.value}: choose a "
                "smaller accumulation, or try it in the next epoch"
            )

    def _check_whole_windows(self, change: Change) -> None:
        """A release that steps at the same count in each epoch, with windows from the first."""
        accumulation, expected = change.accumulation, self._progress.batches
        for count in (change.batches.running, change.batches.later):
            if count is None:
                count = expected + accumulation
            if count > expected and expected % accumulation:
                raise conflict(
                    f"the Trainer steps at batch {expected} of each epoch in any case, which is in "
                    f"the middle of a step of {accumulation} batches: choose an accumulation that "
                    f"divides {expected}"
                )
            if count < expected and count % accumulation:
                raise conflict(
                    f"the last {count % accumulation} of {count} batches of an epoch would be left "
                    f"without a step: the Trainer expects {expected}"
                )

    def _check_updates(self, change: Change) -> None:
        batches, accumulation = change.batches, change.accumulation
        if batches.running is not None:
            rest = -(-(batches.running - batches.before) // accumulation)
            before = self._updates_before(batches.before)
            if before + rest > self._progress.updates:
                self._refuse(before + rest)
        later = 0 if batches.later is None else -(-batches.later // accumulation)
        if later > self._progress.updates:
            self._refuse(later)

    def _updates_before(self, batch: int) -> int:
        """Steps that there are before a batch."""
        trained, stepped = self._progress.trained, self._progress.stepped
        if trained is None or stepped is None or not batch:
            return -(-batch // self.value)
        return stepped + -(-max(0, batch + self.offset - trained) // self.value)

    def _refuse(self, wanted: int) -> None:
        raise conflict(
            f"an epoch would need {wanted} optimizer steps, and the Trainer ends it after "
            f"{self._progress.updates}: the rest would be skipped"
        )


def hf_trainer(batches: int = 0) -> HfTrainer | None:
    """The Trainer that the calling thread trains with, if it does.

    Args:
        batches: of the epoch that runs which the loader has given to training.
    """
    found = variables(_MODULE, _LOOPS)
    if found is None or _COUNT not in found or "self" not in found:
        return None
    trainer, expected = found["self"], int(found[_COUNT])
    accumulation = int(trainer.args.gradient_accumulation_steps)
    updates = found.get("num_update_steps_per_epoch") or found.get("total_updates")
    progress = Progress(
        expected,
        int(updates or -(-expected // accumulation)),
        _after(found.get("step")),
        _after(found.get("update_step")),
    )
    return HfTrainer(trainer, progress, batches)


def _after(index: object) -> int | None:
    return index + 1 if isinstance(index, int) else None
