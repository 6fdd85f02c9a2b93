from __future__ import annotations

import gc
import traceback
import weakref

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (1024, "1024 bytes"),
        (1536, "1.50 KiB"),
        (198 * MIB, "198.00 MiB"),
        (1 << 30, "1024.00 MiB"),
        (3 << 30, "3.00 GiB"),
    ],
)
def test_sizes_read_as_in_the_real_error(size_bytes: int, text: str) -> None:
    from vramscope.emulation.mode import format_size

    assert format_size(size_bytes) == text


def test_the_error_keeps_nothing_that_was_refused() -> None:
    from vramscope.emulation.mode import StorageMode
    from vramscope.emulation.storages import StorageMirror
    from vramscope_analysis.allocator import CachingAllocator

    refused: list[weakref.ref[object]] = []

    class Spy(StorageMirror):
        def see(self, args, kwargs, result):  # type: ignore[no-untyped-def]  # as the original
            refused.append(weakref.ref(result.untyped_storage()))
            return super().see(args, kwargs, result)

    error = None
    with StorageMode(Spy(CachingAllocator(2 * MIB))):
        try:
            torch.empty(4 * MIB, dtype=torch.uint8)
        except torch.cuda.OutOfMemoryError as caught:
            error = caught
    gc.collect()

    assert error is not None
    is_gone = refused[0]() is None  # apart: a failing assert would print all of its bytes
    assert is_gone
    assert error.__context__ is None
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "vramscope" in f.filename]
    assert [frame.name for frame in ours if "test_" not in frame.filename] == ["__torch_dispatch__"]
