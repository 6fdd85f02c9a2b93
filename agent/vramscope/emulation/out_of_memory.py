"""The error that a job gets when the emulated device is full, and who is told before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from vramscope_analysis.allocator import OutOfMemoryError

Observer = Callable[[int, int, int, int], object]
"""Takes ``(device, bytes asked of the device, most that may be held, bytes free)``."""

_HINT: Final = (
    " If reserved but unallocated memory is large try setting {variable}=expandable_segments:True "
    "to avoid fragmentation.  See documentation for Memory Management  ({page})"
)
_PAGE: Final = "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables"
_PAGE_SINCE_2_11: Final = (
    "https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
)


class OutOfMemory:
    """Tells the job's observers, then words the error.

    Args:
        version: torch release whose words are used.
    """

    def __init__(self, version: tuple[int, int]) -> None:
        self._version = version
        self._observers: list[Observer] = []

    def attach(self, observer: Observer) -> None:
        """Call ``observer`` before each error (``_cuda_attach_out_of_memory_observer``).

        There is no way to take it off again, in PyTorch neither.
        """
        self._observers.append(observer)

    def error(self, refused: OutOfMemoryError) -> Exception:
        """Call the observers in turn, then make the error to raise.

        Raises:
            BaseException: what an observer raises; it takes the place of the error.
        """
        text = rejection(refused) if refused.is_rejection else message(refused, self._version)
        if not refused.is_rejection:
            for observer in tuple(self._observers):
                observer(0, refused.segment_bytes, refused.allowed_bytes, refused.free_bytes)
        error: Exception = torch.cuda.OutOfMemoryError(text)
        return error


def message(refused: OutOfMemoryError, version: tuple[int, int]) -> str:
    """Laid out as the real one, with the GPU marked as emulated: training loops parse it."""
    limit = ""
    if refused.allowed_bytes < refused.capacity_bytes:
        limit = f"{format_size(refused.allowed_bytes)} allowed; "
    cached_bytes = refused.reserved_bytes - refused.allocated_bytes
    return (
        f"CUDA out of memory. Tried to allocate {format_size(refused.segment_bytes)}. "
        f"GPU 0 (emulated) has a total capacity of {format_size(refused.capacity_bytes)} "
        f"of which {format_size(refused.free_bytes)} is free. "
        "Including non-PyTorch memory, this process has "
        f"{format_size(refused.reserved_bytes)} memory in use. {limit}"
        f"Of the allocated memory {format_size(refused.allocated_bytes)} is allocated by PyTorch, "
        f"and {format_size(cached_bytes)} is reserved by PyTorch but unallocated."
    ) + hint(version)


def rejection(refused: OutOfMemoryError) -> str:
    """The words for a request that ``throw_on_cudamalloc_oom`` turns down at once."""
    return (
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
        "per_process_memory_fraction limit. "
        f"Requested size: {format_size(refused.segment_bytes)} (on GPU 0, emulated)"
    )


def hint(version: tuple[int, int]) -> str:
    """The advice at the end of the message, which names other things in other releases."""
    variable = "PYTORCH_ALLOC_CONF" if version == (2, 10) else "PYTORCH_CUDA_ALLOC_CONF"
    page = _PAGE if version < (2, 11) else _PAGE_SINCE_2_11
    return _HINT.format(variable=variable, page=page)


def format_size(size_bytes: int) -> str:
    """Size as PyTorch's out-of-memory error writes it."""
    if size_bytes <= 1024:
        return f"{size_bytes} bytes"
    if size_bytes <= 1 << 20:
        return f"{size_bytes / (1 << 10):.2f} KiB"
    if size_bytes <= 1 << 30:
        return f"{size_bytes / (1 << 20):.2f} MiB"
    return f"{size_bytes / (1 << 30):.2f} GiB"
