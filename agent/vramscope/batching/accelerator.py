"""Accumulation in a loop with accelerate: its ``Accelerator``, found where the loop runs."""

from __future__ import annotations

import sys
from typing import Any, Final

from vramscope.batching.accumulation import Change, conflict
from vramscope.batching.index_samplers import WHAT_TO_DO
from vramscope.batching.running_frames import values
from vramscope.batching.windows import FromTheFirst

_MODULE: Final = "accelerate.accelerator"


class AcceleratorLoop(FromTheFirst):
    """A loop that trains with accelerate. Implements ``Accumulation``.

    Args:
        accelerator: the ``Accelerator``.
        batches: how many of the epoch are trained on.
    """

    name = "accelerate"
    ahead = 0

    def __init__(self, accelerator: Any, batches: int) -> None:
        self._accelerator = accelerator
        self._step = int(accelerator.step)
        # At the end of a loader it begins anew, in the middle of a window as well.
        self.offset = self._step - batches if self._step else 0

    @property
    def value(self) -> int:
        """Batches of one optimizer step now."""
        return int(self._accelerator.gradient_accumulation_steps)

    def check(self, change: Change) -> None:
        """Whether it accumulates at all.

        Raises:
            VramscopeError: ``conflict``, it does not, or something else fixes it.
        """
        if change.accumulation == self.value:
            return
        kind = str(getattr(self._accelerator, "distributed_type", "")).rpartition(".")[2]
        if kind in ("DEEPSPEED", "MEGATRON_LM"):
            raise conflict(f"{kind} has an accumulation of its own, fixed at start")
        is_used = self._step > 0 or self._accelerator.gradient_state.end_of_dataloader
        if self.value == 1 and not is_used:
            raise conflict(
                "this loop does not use accelerator.accumulate(), so it steps at each batch: "
                f"{WHAT_TO_DO}, with accumulation, or consent to another global batch"
            )

    def set(self, change: Change) -> None:
        """Accumulate so from the next batch on; the loss is divided by it, too."""
        self._accelerator.gradient_accumulation_steps = change.accumulation


def accelerator_loop(batches: int) -> AcceleratorLoop | None:
    """The one that the calling thread runs, if there is an ``Accelerator`` near it.

    Args:
        batches: how many of the epoch are trained on.
    """
    kind = getattr(sys.modules.get(_MODULE), "Accelerator", None)
    if kind is None:
        return None
    for value in values():
        for each in (value, *_attributes(value)):
            if kind in type(each).__mro__:
                return AcceleratorLoop(each, batches)
    return None


def _attributes(value: object) -> list[Any]:
    # self.accelerator, say
    return list(getattr(value, "__dict__", {}).values())
