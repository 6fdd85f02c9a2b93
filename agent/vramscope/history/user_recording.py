"""Notices that the job starts or stops a recording of its own while one of ours runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from vramscope.patch import Patch

# The first is what a job calls. The others are called by it, however the job got hold of it.
_PLACES: Final = (
    ("torch.cuda.memory", "_record_memory_history"),
    ("torch._C", "_cuda_record_memory_history"),
    ("torch._C", "_cuda_record_memory_history_legacy"),
)


class UserRecording:
    """Tells of calls that are not ours, before PyTorch gets them.

    Args:
        is_ours: whether the call that is made at this moment is our own.
        on_call: called on the thread of the job.
    """

    def __init__(self, is_ours: Callable[[], bool], on_call: Callable[[], None]) -> None:
        self._is_ours = is_ours
        self._on_call = on_call
        self._patches: list[Patch] = []

    def install(self) -> None:
        """Watch from now on, where this PyTorch has the function."""
        for module, name in _PLACES:
            owner: Any = sys.modules.get(module)
            if hasattr(owner, name):
                patch = Patch(owner, name, self._before, _nothing, "history")
                patch.install()
                self._patches.append(patch)

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        for patch in reversed(self._patches):
            patch.remove()
        self._patches.clear()

    def forget_after_fork(self) -> None:
        """In a forked child: do nothing any more."""
        for patch in self._patches:
            patch.forget_after_fork()

    def _before(self, first: Any) -> None:
        del first
        if not self._is_ours():
            self._on_call()


def _nothing(first: Any, raised: BaseException | None) -> None:
    del first, raised
