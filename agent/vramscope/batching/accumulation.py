"""How many batches make one optimizer step, and who can change that."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from vramscope.batching.index_samplers import WHAT_TO_DO
from vramscope.batching.windows import Count, FromTheFirst
from vramscope_protocol.errors import CONFLICT, VramscopeError


class Batches(Struct, frozen=True):
    """What a rank trains on when the change is made."""

    before: int
    """Batches of the epoch that runs, up to the change."""
    running: int | None
    """All of its batches, with those that follow; ``None`` if nobody knows."""
    later: int | None
    """Batches of each later epoch."""


class Change(Struct, frozen=True):
    """The sizes of one rank from a certain batch on."""

    batch_size: int
    accumulation: int
    batches: Batches


class Accumulation(Protocol):
    """Who accumulates. Training thread, at a step's end."""

    @property
    def name(self) -> str:
        """Who that is, in words."""
        ...

    @property
    def value(self) -> int:
        """Batches of one optimizer step now."""
        ...

    @property
    def ahead(self) -> int:
        """Batches that it has fetched and not trained on."""
        ...

    def first_batch(self, drawn: int, now: int, then: int, count: Count) -> int:
        """With which batch a change may begin: see ``FromTheFirst``."""
        ...

    def check(self, change: Change) -> None:
        """Raises ``VramscopeError``, ``conflict``, if what follows would not be as it should."""
        ...

    def set(self, change: Change) -> None:
        """Make the change, at the end of the last step before it."""
        ...


class FixedAccumulation(FromTheFirst):
    """A loop that nobody can tell anything. Implements ``Accumulation``.

    Args:
        value: the batches of a step, as they were counted.
    """

    name = "the training loop"
    ahead = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def check(self, change: Change) -> None:
        """Only what leaves accumulation as it is."""
        if change.accumulation != self.value:
            text = (
                "how this training loop accumulates and scales its loss cannot be changed from "
                f"outside: {WHAT_TO_DO}, with accumulation, or consent to another global batch"
            )
            raise VramscopeError(CONFLICT, text)

    def set(self, change: Change) -> None:
        """Nothing is to be done."""


def conflict(text: str) -> VramscopeError:
    """A refusal, with its reason."""
    return VramscopeError(CONFLICT, text)
