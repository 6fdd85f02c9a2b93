from __future__ import annotations

import pytest

from vramscope_analysis.diagnosis.oom_message import is_of_another_allocator, sizes_in

TEXT = (
    "CUDA out of memory. Tried to allocate 198.00 MiB. GPU 0 has a total capacity of 139.80 GiB "
    "of which 134.00 GiB is free. Process 539 has 1.03 GiB memory in use. Including non-PyTorch "
    "memory, this process has 3.56 GiB memory in use. 3.00 GiB allowed; Of the allocated memory "
    "2.43 GiB is allocated by PyTorch, and 413.97 MiB is reserved by PyTorch but unallocated."
)
"""As torch 2.11 wrote it."""


def test_sizes_are_those_of_the_text() -> None:
    assert sizes_in(TEXT) == {
        "segment_bytes": 198 << 20,
        "total_bytes": round(139.8 * (1 << 30)),
        "free_bytes": 134 << 30,
        "allowed_bytes": 3 << 30,
        "allocated_bytes": round(2.43 * (1 << 30)),
        "cached_bytes": round(413.97 * (1 << 20)),
    }


def test_other_texts_have_none() -> None:
    assert sizes_in("") == sizes_in("Tried to allocate ... MiB") == {}
    assert sizes_in("Tried to allocate 1.2.3 MiB") == {}


@pytest.mark.parametrize(
    ("message", "is_other"),
    [
        (TEXT, False),
        ("", False),
        ("CUDA error: out of memory", True),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("NCCL error: ncclUnhandledCudaError, Cuda failure 2 'out of memory'", True),
        ("RuntimeError: shape mismatch", False),
    ],
)
def test_who_was_refused_is_told_from_the_words(message: str, is_other: bool) -> None:
    assert is_of_another_allocator(message) is is_other
