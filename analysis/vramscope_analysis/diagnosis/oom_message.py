"""What PyTorch's own words say where nothing else does: ``OutOfMemoryError`` and its like."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE: Final = r"([\d.]{1,20}) (bytes|KiB|MiB|GiB)"
_SIZES: Final = {
    "segment_bytes": re.compile(rf"Tried to allocate {_SIZE}"),
    "total_bytes": re.compile(rf"total capacity of {_SIZE}"),
    "free_bytes": re.compile(rf"of which {_SIZE} is free"),
    "allowed_bytes": re.compile(rf"{_SIZE} allowed;"),
    "allocated_bytes": re.compile(rf"{_SIZE} is allocated by PyTorch"),
    "cached_bytes": re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated"),
}
_OTHERS_ALLOCATE: Final = re.compile(
    r"CUDA error: out of memory|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED"
    r"|CUDNN_STATUS_ALLOC_FAILED|CUFFT_ALLOC_FAILED|CUSOLVER_STATUS_ALLOC_FAILED"
    r"|[Nn]ccl[^\n]{0,400}(?:out of memory|failed to allocate)"
)
_NO_WORDS: Final = re.compile(r"NVML_SUCCESS == r[^\n]{0,40} INTERNAL ASSERT FAILED")
_OF_ALLOCATOR: Final = re.compile(r"out of memory\. Tried to allocate", re.IGNORECASE)


def sizes_in(message: str) -> dict[str, int]:
    """Sizes in an out-of-memory text, rounded as PyTorch writes them (two decimals).

    The keys are ``segment_bytes`` (what was asked of the driver), ``total_bytes``, ``free_bytes``,
    ``allowed_bytes``, ``allocated_bytes`` and ``cached_bytes``, as far as the text has them.
    """
    sizes: dict[str, int] = {}
    for name, pattern in _SIZES.items():
        found = pattern.search(message)
        if found:
            try:
                sizes[name] = round(float(found[1]) * _UNITS[found[2]])
            except ValueError:
                continue
    return sizes


def is_probable(message: str) -> bool:
    """Whether PyTorch failed while it put the error into words: its report asks NVML, and not
    every machine has that."""
    return bool(_NO_WORDS.search(message))


def is_of_another_allocator(message: str) -> bool:
    """Whether somebody else than PyTorch's caching allocator was refused: CUDA, cuBLAS, NCCL."""
    return not _OF_ALLOCATOR.search(message) and bool(_OTHERS_ALLOCATE.search(message))
