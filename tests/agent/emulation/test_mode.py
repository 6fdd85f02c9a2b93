from __future__ import annotations

import contextlib
import gc
import traceback
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

MIB = 1 << 20


def make_mode(mirror_type: Any = None, capacity_bytes: int = 2 * MIB) -> tuple[Any, Any, Any]:
    """A mode that is not entered yet, with its history and its out-of-memory errors."""
    from vramscope.emulation.history import History
    from vramscope.emulation.mode import StorageMode
    from vramscope.emulation.out_of_memory import OutOfMemory
    from vramscope.emulation.storages import StorageMirror
    from vramscope_analysis.allocator import CachingAllocator

    history, out_of_memory = History(), OutOfMemory((2, 11))
    model = CachingAllocator(capacity_bytes)
    mirror = (mirror_type or StorageMirror)(model, history)
    return StorageMode(mirror, history, out_of_memory), history, out_of_memory


def test_the_error_keeps_nothing_that_was_refused() -> None:
    from vramscope.emulation.storages import StorageMirror

    refused: list[weakref.ref[object]] = []
    gone_when_observed: list[bool] = []

    class Spy(StorageMirror):
        def see(self, args, kwargs, result):  # type: ignore[no-untyped-def]  # as the original
            refused.append(weakref.ref(result.untyped_storage()))
            return super().see(args, kwargs, result)

    mode, _, out_of_memory = make_mode(Spy)
    out_of_memory.attach(lambda *_: gone_when_observed.append(refused[0]() is None))
    error = None
    with mode:
        try:
            torch.empty(4 * MIB, dtype=torch.uint8)
        except torch.cuda.OutOfMemoryError as caught:
            error = caught
    gc.collect()

    assert error is not None
    is_gone = refused[0]() is None  # apart: a failing assert would print all of its bytes
    assert is_gone
    assert gone_when_observed == [True]
    assert error.__context__ is None
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "vramscope" in f.filename]
    assert [frame.name for frame in ours if "test_" not in frame.filename] == ["__torch_dispatch__"]


def scopes(history: Any) -> list[tuple[str, str]]:
    return [(stage, name) for stage, name, _ in history.recorded().annotations]


def test_scopes_that_the_job_names_are_noted_while_a_history_is_recorded() -> None:
    from vramscope.emulation.history import Context, HistoryRequest

    mode, history, _ = make_mode(capacity_bytes=64 * MIB)
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = torch.optim.SGD([weight])
    with mode:
        optimizer.step()
        history.start(HistoryRequest(Context.NEVER, 100))
        optimizer.step()
        named = torch.profiler.record_function
        with named("forward"), contextlib.suppress(KeyError), named("layer"):
            raise KeyError

    assert scopes(history) == [
        ("START", "Optimizer.step#SGD.step"),
        ("END", "Optimizer.step#SGD.step"),
        ("START", "forward"),
        ("START", "layer"),
        ("END", "layer"),
        ("END", "forward"),
    ]


def test_an_observer_may_ask_for_memory_itself() -> None:
    mode, _, out_of_memory = make_mode()
    made: list[Any] = []
    out_of_memory.attach(lambda *_: made.append(torch.ones(10) + 1))
    with mode, pytest.raises(torch.cuda.OutOfMemoryError):
        torch.empty(4 * MIB, dtype=torch.uint8)

    assert made[0].sum() == 20
