"""Tells when the training thread begins and ends a backward pass.

``Tensor.backward`` looks ``torch.autograd.backward`` up when it is called, in every release, so
that the one function is seen from everywhere. ``torch.autograd.grad`` is no backward pass: it
fills no gradients. Passes inside a pass (checkpoints with re-entrant autograd, double backward in
a hook) and those of other threads are not told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from vramscope.devices.cuda import autograd_reason
from vramscope.steps.late_patch import LatePatch

AUTOGRAD_MODULE: Final = "torch.autograd"


class BackwardHook(LatePatch):
    """Installs and removes the hook; torch may be imported before or after.

    Args:
        is_training_thread: whether the calling thread is the one that trains.
        on_begin: called when a pass begins.
        on_end: called when it is over, also by an exception.
        is_wanted: whether a pass that begins now is worth telling; asked at each of that thread.
    """

    def __init__(
        self,
        is_training_thread: Callable[[], bool],
        on_begin: Callable[[], None],
        on_end: Callable[[], None],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(AUTOGRAD_MODULE, "backward", self._begins, self._ended, "backward hook")
        self._is_training_thread = is_training_thread
        self._on_begin = on_begin
        self._on_end = on_end
        self._is_wanted = is_wanted
        self._depth = 0
        self._is_told = False

    def _begins(self, tensors: Any) -> None:
        del tensors
        if not self._is_training_thread():
            return
        # A pass inside one that is not wanted is seen to be inside: autograd is busy.
        if not self._depth and not self._is_wanted():
            return
        self._depth += 1
        if self._depth == 1 and autograd_reason(sys.modules["torch"]) is None:
            self._is_told = True
            self._on_begin()

    def _ended(self, tensors: Any, raised: BaseException | None) -> None:
        del tensors, raised
        if self._depth == 0 or not self._is_training_thread():
            return
        self._depth -= 1
        if self._depth == 0 and self._is_told:
            self._is_told = False
            self._on_end()
