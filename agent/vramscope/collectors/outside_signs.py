"""What can be seen of a process that takes memory outside of PyTorch's allocator."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from vramscope.identity.process_group_watcher import C10D_MODULE
from vramscope.processes.memory_map import read_memory_map

NCCL: Final = "NCCL"

_LIBRARIES: Final = (
    ("libcublas", "cuBLAS"),
    ("libcudnn", "cuDNN"),
    ("libcusparse", "cuSPARSE"),
    ("libcusolver", "cuSOLVER"),
    ("libtorch_cuda_linalg", "cuSOLVER"),
    ("libcufft", "cuFFT"),
    ("libnvshmem", "NVSHMEM"),
    ("libnccl", NCCL),
    ("libnvrtc", "NVRTC"),
    ("libcupti", "CUPTI"),
)


class Signs(NamedTuple):
    """What is there at one moment.

    Args:
        groups: process groups of ``torch.distributed`` that use NCCL.
        libraries: files of libraries that are mapped and known to use device memory.
    """

    groups: int = 0
    libraries: frozenset[str] = frozenset()


def read_signs(paths: Callable[[], Iterable[str]] | None = None) -> Signs:
    """What is there now. Reading the mapped files takes about a millisecond.

    Args:
        paths: the files that are mapped; those of this process by default.
    """
    names = map(os.path.basename, (paths or _mapped_paths)())
    return Signs(count_groups(), frozenset(name for name in names if library_of(name)))


def library_of(file_name: str) -> str:
    """What a person calls the library in a file; "" if it is none of those that are known."""
    return next((name for start, name in _LIBRARIES if file_name.startswith(start)), "")


def names_of_new(before: Signs, after: Signs) -> list[str]:
    """What came between two moments, in words."""
    names = [NCCL] if after.groups > before.groups else []
    names += sorted(library_of(each) for each in after.libraries - before.libraries)
    return list(dict.fromkeys(names))


def count_groups() -> int:
    """Process groups that use NCCL, in this process."""
    c10d: Any = sys.modules.get(C10D_MODULE)
    groups: Any = getattr(getattr(c10d, "_world", None), "pg_map", None) or {}
    # The value begins with the backends: "nccl", or "cpu:gloo,cuda:nccl".
    return sum("nccl" in str(next(iter(value), "")) for value in list(groups.values()))


def _mapped_paths() -> Iterable[str]:
    found = read_memory_map(os.getpid())
    return () if found is None else found.all_paths
