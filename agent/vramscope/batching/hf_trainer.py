"""Accumulation in the Trainer of Hugging Face transformers, found on the stack of training.

It reads ``args.gradient_accumulation_steps`` anew for each step, but counts the batches of an epoch
once and for all: it steps at that count, whatever there is to come, and takes only what is left of
an old window for the last step of an epoch. The latter is mended here; what meets the former in
the middle of a window is refused. accelerate is told 1 by it, always, and must not divide again.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from vramscope.batching.accumulation import Change, conflict
from vramscope.batching.running_frames import variables

_MODULE: Final = "transformers.trainer"
_LOOPS: Final = ("_run_epoch", "_inner_training_loop")
_COUNT: Final = "steps_in_epoch"
_TAKES_WHOLE_WINDOWS: Final = "_vramscope_takes_whole_windows"


class HfTrainer:
    """The Trainer that trains now. Implements ``Accumulation``.

    Args:
        trainer: the Trainer.
        steps_in_epoch: the batches that it expects of an epoch.
        updates: the optimizer steps that it makes of them.
    """

    name = "the Trainer of transformers"
    offset = 0
    ahead = 0

    def __init__(self, trainer: Any, steps_in_epoch: int, updates: int) -> None:
        self._trainer = trainer
        self._steps_in_epoch = steps_in_epoch
        self._updates = updates

    @property
    def value(self) -> int:
        """Batches of one optimizer step now."""
        return int(self._trainer.args.gradient_accumulation_steps)

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
        accumulation, expected = change.accumulation, self._steps_in_epoch
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
        self._check_updates(change)

    def set(self, change: Change) -> None:
        """Accumulate so from the next step on."""
        trainer = self._trainer
        trainer.args.gradient_accumulation_steps = change.accumulation
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

    def _check_updates(self, change: Change) -> None:
        batches, accumulation = change.batches, change.accumulation
        if batches.running is not None:
            rest = -(-(batches.running - batches.before) // accumulation)
            before = -(-batches.before // self.value)
            if before + rest > self._updates:
                self._refuse(before + rest)
        if batches.later is not None and -(-batches.later // accumulation) > self._updates:
            self._refuse(-(-batches.later // accumulation))

    def _refuse(self, wanted: int) -> None:
        raise conflict(
            f"an epoch would need {wanted} optimizer steps, and the Trainer ends it after "
            f"{self._updates}: the rest would be skipped"
        )


def hf_trainer() -> HfTrainer | None:
    """The Trainer that the calling thread trains with, if it does."""
    found = variables(_MODULE, _LOOPS)
    if found is None or _COUNT not in found or "self" not in found:
        return None
    trainer, expected = found["self"], int(found[_COUNT])
    accumulation = int(trainer.args.gradient_accumulation_steps)
    updates = found.get("num_update_steps_per_epoch") or found.get("total_updates")
    return HfTrainer(trainer, expected, int(updates or -(-expected // accumulation)))
