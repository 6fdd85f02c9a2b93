"""Calls into PyTorch's CUDA caching allocator that change its state and leave no trace entry.

``torch.cuda.memory._snapshot()`` tells what was allocated and freed, but not that the cache was
emptied, that the limit or a setting changed, or which pool allocations were routed to. A replay
needs them: each call is told to ``note`` before it takes effect, wherever it comes from (the
program, ``torch.cuda.graph``, a training framework). What C++ code does by itself is not seen.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch

Note = Callable[..., dict[str, Any]]
"""``note(call, **details)`` -> the noted call, to which details may be added later."""


def watch_unlogged_calls(note: Note, total_bytes: int) -> None:
    """Have every such call of this process noted from now on, for the rest of its life.

    ``total_bytes`` is the size of the device: a memory fraction is noted as a limit in bytes.
    """
    _watch_cache_and_limit(note, total_bytes)
    _watch_settings(note)
    _watch_scopes(note)
    _watch_pools(note)
    _watch_graphs(note)


def _before(owner: Any, name: str, act: Callable[..., object]) -> None:
    """Call ``act`` with the arguments of ``owner.name`` before each call of it."""
    original = getattr(owner, name, None)
    if original is None:  # this version of torch does not have it
        return

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        act(*args, **kwargs)
        return original(*args, **kwargs)

    setattr(owner, name, watched)


def _watch_cache_and_limit(note: Note, total_bytes: int) -> None:
    def set_limit(fraction: float, _device: object = None) -> None:
        limit_bytes = int(fraction * total_bytes) if fraction < 1 else None
        note("set_limit", limit_bytes=limit_bytes, fraction=fraction)

    def refuse(*_args: object) -> None:
        raise RuntimeError("expected totals from the start of the process, got a reset of them")

    _before(torch._C, "_cuda_emptyCache", lambda: note("empty_cache"))
    _before(torch._C, "_accelerator_emptyCache", lambda: note("empty_cache"))
    _before(torch._C, "_cuda_setMemoryFraction", set_limit)
    _before(torch._C, "_cuda_resetPeakMemoryStats", lambda *_device: note("reset_peaks"))
    _before(torch._C, "_cuda_resetAccumulatedMemoryStats", refuse)


def _watch_settings(note: Note) -> None:
    def set_settings(conf: str) -> None:
        note("set_settings", conf=conf)

    # The first from 2.10 on, the second before.
    _before(torch._C, "_accelerator_setAllocatorSettings", set_settings)
    _before(torch._C, "_cuda_cudaCachingAllocator_set_allocator_settings", set_settings)


def _watch_scopes(note: Note) -> None:
    """``torch.cuda.use_mem_pool``: what it imported by name is replaced where it looks it up."""

    def begin(_device: int, pool: tuple[int, int]) -> None:
        note("begin_pool", pool=list(pool), is_capture=False)

    def end(_device: int, pool: tuple[int, int]) -> None:
        note("end_pool", pool=list(pool), is_capture=False)

    def release(_device: int, pool: tuple[int, int]) -> None:
        note("release_pool", pool=list(pool), reason="scope")

    memory = torch.cuda.memory
    _before(memory, "_cuda_beginAllocateToPool", begin)
    _before(memory, "_cuda_beginAllocateCurrentThreadToPool", begin)
    _before(memory, "_cuda_endAllocateToPool", end)
    _before(memory, "_cuda_releasePool", release)


def _watch_pools(note: Note) -> None:
    pool_class = torch.cuda.MemPool
    original = pool_class.__init__

    @functools.wraps(original)
    def watched(self: Any, *args: Any, **kwargs: Any) -> None:
        options = dict(zip(("allocator", "use_on_oom", "no_split"), args, strict=False)) | kwargs
        noted = note(
            "create_pool",
            pool=None,
            use_on_oom=bool(options.get("use_on_oom", False)),
            no_split=bool(options.get("no_split", False)),
        )
        original(self, *args, **kwargs)
        noted["pool"] = list(self.id)

    pool_class.__init__ = watched
    _before_deletion(
        pool_class, lambda self: note("release_pool", pool=list(self.id), reason="pool")
    )


def _before_deletion(owner: Any, act: Callable[[Any], object]) -> None:
    """Call ``act`` with each object that is about to go: its memory is given up only after that.

    A finalizer of ``weakref`` comes too late: objects of C++ run their destructor before it.
    """
    original = getattr(owner, "__del__", None)

    def watched(self: Any) -> None:
        act(self)
        if original is not None:
            original(self)

    owner.__del__ = watched


def _watch_graphs(note: Note) -> None:
    graph_class = torch.cuda.CUDAGraph
    begin, end, reset = graph_class.capture_begin, graph_class.capture_end, graph_class.reset
    begun: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
    pools: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()

    @functools.wraps(begin)
    def watched_begin(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        # Only now: the state of the random generators is allocated before the scope begins.
        stream = torch.cuda.current_stream().cuda_stream
        begun[self] = note("begin_pool", pool=None, is_capture=True, stream=stream)

    @functools.wraps(end)
    def watched_end(self: Any) -> None:
        noted = note("end_pool", pool=None, is_capture=True)
        end(self)
        pools[self] = list(self.pool())  # known only now
        noted["pool"] = begun[self]["pool"] = pools[self]

    def release(self: Any) -> None:
        if self in pools:  # given up once: not again when the object goes
            note("release_pool", pool=pools.pop(self), reason="graph")

    @functools.wraps(reset)
    def watched_reset(self: Any) -> None:
        release(self)
        reset(self)

    graph_class.capture_begin = watched_begin
    graph_class.capture_end = watched_end
    graph_class.reset = watched_reset
    _before_deletion(graph_class, release)
