"""When the trampoline is handed to PyTorch: as soon as the job has set CUDA up, never before.

Handing it over would set CUDA up. A job that has not done so yet does it on a thread of its own,
and PyTorch calls us there, before the first tensor. One that has is met at its next step end: no
allocation goes on there that could be reading the list of observers at that moment.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from vramscope.devices.caching_allocator import initialised_cuda
from vramscope.guard import Attempt, guarded, summary
from vramscope.notices import Notices
from vramscope.oom import trampoline
from vramscope.steps.import_watcher import ImportWatcher

_CUDA_MODULE: Final = "torch.cuda"
_NOTE: Final = "oom_observer"


class Attaching:
    """Hands the trampoline over once.

    Args:
        notices: told when this allocator has no observers.
        emulated: whether the device is an emulated one.
    """

    def __init__(self, notices: Notices, *, emulated: bool) -> None:
        self._notices = notices
        self._emulated = emulated
        self._watcher = ImportWatcher(_CUDA_MODULE, self._cuda_imported)
        self._pid = -1
        self._is_due = False
        self.is_attached = False
        """Whether PyTorch will tell."""

    def install(self) -> None:
        """Attach now, or when it can be."""
        self._pid = os.getpid()
        if self._emulated:
            self._attach()
        elif trampoline.is_attached():
            self.is_attached = True
        else:
            self._watcher.install()

    def remove(self) -> None:
        """Attach no more; what is attached stays, and calls nobody."""
        self._wait_no_more()
        self._watcher.remove()

    def forget_after_fork(self) -> None:
        """In a forked child: what PyTorch still has of ours does nothing."""
        self._wait_no_more()

    def at_boundary(self) -> None:
        """A step has ended. Training thread."""
        if self._is_due and initialised_cuda() is not None:
            self._is_due = False
            self._attach()

    def _cuda_imported(self) -> None:
        cuda: Any = sys.modules[_CUDA_MODULE]
        lazy_call = getattr(cuda, "_lazy_call", None)
        if initialised_cuda() is not None or lazy_call is None:
            self._is_due = True
        else:
            global _waiting, _queued_with
            _waiting = self
            if lazy_call is not _queued_with:
                _queued_with = lazy_call
                lazy_call(_cuda_comes_up)

    def _wait_no_more(self) -> None:
        global _waiting
        self._pid = -1
        self._is_due = False
        if _waiting is self:
            _waiting = None

    def cuda_comes_up(self) -> None:
        """On the thread of the job that sets CUDA up; what is raised here would be its error."""
        if self._pid == os.getpid() and not self.is_attached:
            with guarded("out of memory observer"):
                self._attach()

    def _attach(self) -> None:
        with Attempt() as attempt:
            self.is_attached = trampoline.attach(sys.modules["torch"]._C, emulated=self._emulated)
        if attempt.error is not None:
            why = summary(attempt.error)
            self._notices.note(_NOTE, f"this allocator does not tell when memory runs out ({why})")


def _cuda_comes_up() -> None:
    """PyTorch forgets no call that was queued, so there is one for all agents of the process."""
    waiting = _waiting
    if waiting is not None:
        waiting.cuda_comes_up()


_waiting: Attaching | None = None
_queued_with: object = None
