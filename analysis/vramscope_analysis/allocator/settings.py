"""The options of ``PYTORCH_CUDA_ALLOC_CONF`` that the model follows, in bytes."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20

UNLIMITED = (1 << 63) - 1
"""``max_split_size`` when the option is unset: no block reaches it."""

POWER2_DIVISION_SLOTS = 16
"""``roundup_power2_divisions`` has one entry for each power of two from 1 MiB to 32 GiB."""


@dataclass(frozen=True)
class AllocatorSettings:
    """Options with PyTorch's defaults (``CUDAAllocatorConfig``).

    Args:
        roundup_power2_divisions: one entry per power of two from 1 MiB up; 0 means 512 B rounding.
        max_split_size_bytes: blocks of this size and more are neither split nor split for.
        max_non_split_rounding_bytes: how much larger than an oversize request a block may be;
            at least ``large_segment_bytes``.
        garbage_collection_threshold: fraction of the capacity above which old blocks are released
            before the device is asked for more; 0 is off.
        large_segment_bytes: segment size for requests between 1 MiB and 10 MiB, and the size of
            the pages of expandable segments in the large pool.
        expandable_segments: map memory into ranges page by page, in place of whole segments.
        per_process_memory_fraction: part of the device that the process may take, read when the
            allocator is made (2.10+) and by ``throw_on_cudamalloc_oom``.
        throw_on_cudamalloc_oom: refuse what exceeds that part before the device is asked (2.12+).
    """

    roundup_power2_divisions: tuple[int, ...] = (0,) * POWER2_DIVISION_SLOTS
    max_split_size_bytes: int = UNLIMITED
    max_non_split_rounding_bytes: int = 20 * MIB
    garbage_collection_threshold: float = 0.0
    large_segment_bytes: int = 20 * MIB
    expandable_segments: bool = False
    per_process_memory_fraction: float = 1.0
    throw_on_cudamalloc_oom: bool = False

    def __post_init__(self) -> None:
        if self.max_non_split_rounding_bytes < self.large_segment_bytes:
            object.__setattr__(self, "max_non_split_rounding_bytes", self.large_segment_bytes)
        if len(self.roundup_power2_divisions) != POWER2_DIVISION_SLOTS:
            raise ValueError(
                f"expected {POWER2_DIVISION_SLOTS} roundup_power2_divisions, "
                f"got {len(self.roundup_power2_divisions)}"
            )
        for divisions in self.roundup_power2_divisions:
            if divisions < 0 or divisions & (divisions - 1):
                raise ValueError(f"expected a power of two (or 0) of divisions, got {divisions}")
        if not 0.0 <= self.garbage_collection_threshold < 1.0:
            raise ValueError(
                "expected a garbage_collection_threshold of at least 0 and below 1, "
                f"got {self.garbage_collection_threshold}"
            )
        if not 0.0 <= self.per_process_memory_fraction <= 1.0:
            raise ValueError(
                "expected a per_process_memory_fraction from 0 to 1, "
                f"got {self.per_process_memory_fraction}"
            )
