"""Recognises evaluation by how batches are used: none of them leaves a trace in autograd.

Asked only when the training thread fetches a batch, which is cheap, and nothing of the job's
model is touched. There are two signs:

- Gradients are off while a batch is fetched: ``with torch.no_grad(): for batch in loader``.
- Gradients are on, but nothing is recorded from one fetch to the next, twice in a row, with data
  that no optimizer has stepped on: ``for batch in loader: with torch.no_grad(): ...``.

Either is taken back when an optimizer steps in the middle of the loop: some jobs train without
autograd, and some fetch under ``no_grad`` what they then train on.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol

from vramscope.phases.phases import Phases
from vramscope.phases.stretches import Stretch

_QUIET_FETCHES: Final = 2
_MAX_DATASETS: Final = 64


class Autograd(Protocol):
    """What is asked of PyTorch, about the calling thread."""

    def is_on(self) -> bool:
        """Whether operations are recorded now."""
        ...

    def recorded(self) -> int:
        """A number that is another one when something was recorded in between."""
        ...


class TorchAutograd:
    """Autograd of the job's torch."""

    def is_on(self) -> bool:
        """Whether operations are recorded now; they are not in ``inference_mode`` either."""
        return bool(_torch().is_grad_enabled())

    def recorded(self) -> int:
        """Number that the next node of the graph would get; each thread counts its own."""
        return int(_torch().autograd._get_sequence_nr())


class Evaluation:
    """Enters and leaves the phase "eval". Every call comes from the training thread.

    Args:
        phases: where it is entered and left.
        autograd: what is asked of PyTorch.
    """

    def __init__(self, phases: Phases, autograd: Autograd | None = None) -> None:
        self._phases = phases
        self._autograd = autograd or TorchAutograd()
        self._open: Stretch | None = None
        self._is_off = False
        """Whether the open stretch was entered because gradients were off."""
        self._trusts_mode = True
        # Ids and weak references: nothing of the job's may live longer because of us.
        self._trained_on: set[int] = set()
        self._iterator: Callable[[], object] | None = None
        self._dataset: int | None = None
        self._recorded = 0
        self._quiet = 0
        self._since_ns = 0

    def before_fetch(self, iterator: object, now_ns: int) -> None:
        """``iterator``, of a ``DataLoader``, is asked for its next batch at this time."""
        is_on = self._autograd.is_on()
        goes_on = self._iterator is not None and self._iterator() is iterator
        if goes_on and self._autograd.recorded() == self._recorded:
            self._quiet += 1
        else:
            self._quiet = 0
            self._since_ns = now_ns
        self._iterator = _weak(iterator)
        self._dataset = id(getattr(iterator, "_dataset", None))
        if self._open is not None:
            self._look_again(is_on, goes_on)
        if self._open is not None or self._phases.is_told():
            return
        if not is_on:
            if self._trusts_mode:
                self._enter(now_ns, is_off=True)
        elif self._quiet >= _QUIET_FETCHES and self._is_other_data():
            self._enter(self._since_ns, is_off=False)

    def after_fetch(self, is_over: bool) -> None:
        """The batch is there, or there was none: the loop is over."""
        self._recorded = self._autograd.recorded()
        if is_over:
            self._iterator = self._dataset = None
            self._quiet = 0
            self._leave()

    def before_save(self) -> None:
        """Something is saved. With gradients on again, what they were off for is over."""
        if self._open is not None and self._is_off and self._autograd.is_on():
            self._leave()

    def optimizer_stepped(self) -> None:
        """An optimizer has stepped: on the batch fetched last, if its loop is not over.

        A loop that an exception has ended is over as well: its iterator is gone.
        """
        is_in_loop = self._iterator is not None and self._iterator() is not None
        if self._dataset is not None and len(self._trained_on) < _MAX_DATASETS:
            self._trained_on.add(self._dataset)
        if self._open is None:
            return
        if not self._is_off:
            self._leave(was_none=is_in_loop)
        elif not self._autograd.is_on() or (is_in_loop and self._quiet == 0):
            self._leave(was_none=True)
        else:
            self._leave()

    def _look_again(self, is_on: bool, goes_on: bool) -> None:
        if self._is_off and is_on:
            # The block without gradients has been left.
            self._leave()
        elif goes_on and self._quiet == 0:
            # The job has computed gradients from a batch of this very loop.
            self._leave(was_none=True)
        elif not goes_on and not self._is_off:
            self._leave()

    def _is_other_data(self) -> bool:
        return bool(self._trained_on) and self._dataset not in self._trained_on

    def _enter(self, start_ns: int, *, is_off: bool) -> None:
        self._is_off = is_off
        self._open = self._phases.begin("eval", "loader", start_ns)

    def _leave(self, *, was_none: bool = False) -> None:
        stretch, self._open = self._open, None
        if stretch is None:
            return
        if was_none:
            self._trusts_mode = self._trusts_mode and not self._is_off
            self._phases.cancel(stretch)
        else:
            self._phases.end(stretch)


def _weak(iterator: object) -> Callable[[], object]:
    try:
        return weakref.ref(iterator)
    except TypeError:  # of a class that allows none: each of its fetches is one for itself
        return lambda: None


def _torch() -> Any:
    return sys.modules["torch"]
