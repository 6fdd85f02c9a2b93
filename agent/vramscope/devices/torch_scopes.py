"""Graph captures and memory pools that the job has open, seen by wrapping PyTorch's functions.

PyTorch has no question "is any pool scope open on this thread?". ``empty_cache`` inside one
raises up to 2.7 and silently does nothing from 2.8 on; both would make a receipt lie.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast

from vramscope.steps.import_watcher import is_imported

_MODULES = ("torch", "torch.cuda.memory", "torch.cuda.graphs")
_BEGIN = (
    "_cuda_beginAllocateToPool",
    "_cuda_beginAllocateCurrentStreamToPool",
    "_cuda_beginAllocateCurrentThreadToPool",
)
_END = ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool")

CAPTURING: Final = "a CUDA graph is being captured"


class _Patch(NamedTuple):
    owner: Any
    name: str
    original: Any
    wrapper: Any


class TorchScopes:
    """Counts open scopes and notices allocators that are written in Python."""

    def __init__(self) -> None:
        # Lists, because append and pop are atomic and a counter's += is not.
        self._open: list[str] = []
        self.is_open: Sequence[object] = self._open
        """Not empty inside of a scope; asked at each end of a step."""
        self._patches: list[_Patch] = []
        self._installed = threading.Lock()
        self.has_custom_allocator = False
        """A pool allocates through a function handed in from Python. That function may need the
        GIL while the allocator's lock is held, so a thread of ours that asks for the counters
        could stop the job for good."""

    def open_scope(self) -> str | None:
        """Words for the innermost open scope, ``None`` outside of all."""
        try:
            return self._open[-1]
        except IndexError:
            return None

    def is_capturing(self) -> bool:
        """Whether ``torch.cuda.graph`` is entered, on whatever stream."""
        return CAPTURING in self._open

    def install(self) -> None:
        """Wrap what opens and closes scopes, once: as soon as PyTorch's modules are there."""
        if self._installed.locked() or not all(map(is_imported, _MODULES)):
            return
        if not self._installed.acquire(blocking=False):
            return  # another thread has just done it
        torch, memory, graphs = (cast("Any", sys.modules[name]) for name in _MODULES)
        for name in _BEGIN:
            self._wrap(memory, name, after=lambda: self._open.append("a memory pool is in use"))
        for name in _END:
            self._wrap(memory, name, before=self._close)
        graph = getattr(graphs, "graph", None)
        self._wrap(graph, "__enter__", after=lambda: self._open.append(CAPTURING))
        self._wrap(graph, "__exit__", before=self._close)
        self._wrap(torch._C, "_cuda_customAllocator", before=self._saw_custom_allocator)

    def remove(self) -> None:
        """Put the originals back, where nobody else has wrapped our wrapper."""
        for patch in reversed(self._patches):
            if getattr(patch.owner, patch.name, None) is patch.wrapper:
                setattr(patch.owner, patch.name, patch.original)
        self._patches.clear()
        self._open.clear()

    def _close(self) -> None:
        if self._open:  # a scope that was open already when we came has no entry
            self._open.pop()

    def _saw_custom_allocator(self) -> None:
        self.has_custom_allocator = True

    def _wrap(
        self,
        owner: Any,
        name: str,
        before: Callable[[], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        original = getattr(owner, name, None)
        if original is None or isinstance(original, type):
            return  # this PyTorch has no such function, or a dummy class of the CPU build

        @functools.wraps(original)
        def wrapper(*args: Any, **options: Any) -> Any:
            if before is not None:
                before()
            result = original(*args, **options)
            if after is not None:
                after()
            return result

        setattr(owner, name, wrapper)
        self._patches.append(_Patch(owner, name, original, wrapper))
