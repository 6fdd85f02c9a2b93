"""Stands between a loader's iterator and its sampler, to change the size before a certain batch.

Indices are drawn on the training thread, ahead of what is trained on where there are workers. The
size changes before the draw that the plan names, so that it is the same batch on every rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vramscope.guard import guarded

Apply = Callable[[Any], "Iterator[Any] | None"]
"""Sets sizes, given the iterator so far; returns what goes on in its place, or ``None``."""


class Redraw:
    """An iterator of batches of indices: at first those that it stands before.

    Args:
        source: the iterator so far.
        batches: how many it has given.
        samples: how many indices were in them.
    """

    def __init__(self, source: Iterator[Any], batches: int, samples: int) -> None:
        self.source = source
        self.batches = batches
        self.samples = samples
        self._at: int | None = None
        self._apply: Apply | None = None

    def __iter__(self) -> Redraw:
        return self

    def __next__(self) -> Any:
        if self._at is not None and self.batches >= self._at:
            self.change_now()
        try:
            indices = next(self.source)
        except StopIteration:
            self.change_now()
            raise
        self.batches += 1
        self.samples += len(indices)
        return indices

    def change_at(self, batches: int | None, apply: Apply) -> None:
        """Call ``apply`` before the draw that follows so many; at the end if that is ``None``."""
        self._apply, self._at = apply, batches

    @property
    def is_over(self) -> bool:
        """Whether its source has ended: with workers some batches before the job sees it."""
        return getattr(self.source, "gi_frame", self.source) is None

    @property
    def is_pending(self) -> bool:
        """Whether there is something that is still to be called."""
        return self._apply is not None

    def cancel(self) -> bool:
        """Do not call it; whether it had not been called."""
        apply, self._apply, self._at = self._apply, None, None
        return apply is not None

    def change_now(self) -> None:
        """Call it if that has not happened; it may not fail, and if it does the job goes on."""
        apply, self._apply, self._at = self._apply, None, None
        if apply is not None:
            with guarded("batch size"):
                self.source = apply(self.source) or self.source


def installed(iterator: Any, batch_size: int, skipped: int) -> Redraw:
    """The one before a loader's iterator, which is put there if there is none.

    Args:
        iterator: of a ``DataLoader``.
        batch_size: of all batches that were drawn so far.
        skipped: batches that were left out at the beginning.
    """
    source = iterator._sampler_iter
    if isinstance(source, Redraw):
        return source
    batches = drawn(iterator)
    redraw = Redraw(source, batches, (batches + skipped) * batch_size)
    iterator._sampler_iter = redraw
    return redraw


def drawn(iterator: Any) -> int:
    """Batches of indices that a loader's iterator has drawn: with workers, ahead of the job."""
    return int(getattr(iterator, "_send_idx", iterator._num_yielded))
