from __future__ import annotations

import pytest

from vramscope.oom.out_of_memory_error import MAX_TEXT, message_of, place_of


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch's."""


ASSERTION = (
    'NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":838, '
    "please report a bug to PyTorch."
)


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "device"),
        (RuntimeError("CUDA error: out of memory"), "device"),
        (RuntimeError("MPS backend out of memory (MPS allocated: 5.00 GB)"), "device"),
        (RuntimeError(ASSERTION), "device"),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate "
                "memory: you tried to allocate 400000000000 bytes."
            ),
            "host",
        ),
        (MemoryError(), "host"),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), None),
        (RuntimeError("INTERNAL ASSERT FAILED at engine.cpp"), None),
        (ValueError("out of memory"), None),
        (KeyboardInterrupt(), None),
    ],
)
def test_what_says_that_memory_ran_out(error: BaseException, place: str | None) -> None:
    assert place_of(error) == place


def test_a_message_without_end_is_cut() -> None:
    assert len(message_of(RuntimeError("x" * 10 * MAX_TEXT))) == MAX_TEXT
