"""Which sizes a command asks for, given those that there are. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from vramscope.batching.accumulation import conflict
from vramscope_protocol.parameters import AccumulationParams, BatchSizeParams

_MAX_TRIED: Final = 1 << 16


class Sizes(Struct, frozen=True):
    """Samples of one rank for one forward pass, forward passes of one optimizer step, and ranks."""

    batch_size: int
    accumulation: int
    ranks: int

    @property
    def global_batch(self) -> int:
        """Samples of one optimizer step."""
        return self.batch_size * self.accumulation * self.ranks

    def told(self) -> dict[str, int]:
        """As a receipt shows them."""
        return {
            "batch_size": self.batch_size,
            "accumulation": self.accumulation,
            "global_batch": self.global_batch,
        }


class NewSizes(Struct, frozen=True):
    """Sizes whose first step runs, for whoever tells what goes wrong in it."""

    since_step: int
    """Steps that were over when it began."""
    before: dict[str, int]
    after: dict[str, int]


def wanted_sizes(now: Sizes, params: BatchSizeParams | AccumulationParams) -> Sizes:
    """The sizes that a command asks for.

    Raises:
        VramscopeError: ``conflict``, they would change the global batch without consent.
    """
    each = now.batch_size * now.accumulation
    if isinstance(params, AccumulationParams):
        size, accumulation = now.batch_size, params.accumulation
        if not params.change_global_batch:
            size = _part(each, accumulation, "an accumulation")
    else:
        size = params.batch_size
        if params.accumulation is not None:
            accumulation = params.accumulation
        elif params.change_global_batch and each % size:
            accumulation = now.accumulation
        else:
            accumulation = _part(each, size, "a batch size")
    wanted = Sizes(size, accumulation, now.ranks)
    if wanted.global_batch != now.global_batch and not params.change_global_batch:
        raise conflict(
            f"the global batch would be {wanted.global_batch} instead of {now.global_batch}: "
            "consent to it, or choose sizes that keep it"
        )
    return wanted


def _part(samples: int, divisor: int, what: str) -> int:
    if samples % divisor:
        near = [each for each in range(1, min(samples, _MAX_TRIED) + 1) if samples % each == 0]
        near.sort(key=lambda each: (abs(each - divisor), each))
        choices = " or ".join(str(each) for each in sorted(near[:2]))
        raise conflict(
            f"{what} of {divisor} does not divide the {samples} samples that a rank takes for each "
            f"step: {choices} would keep the global batch"
        )
    return samples // divisor
