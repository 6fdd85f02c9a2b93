"""The counters as a table, in the manner of ``torch.cuda.memory_summary()``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_BYTE_ROWS: Final = (
    ("Allocated memory", "allocated_bytes"),
    ("Active memory", "active_bytes"),
    ("Requested memory", "requested_bytes"),
    ("GPU reserved memory", "reserved_bytes"),
    ("Non-releasable memory", "inactive_split_bytes"),
)
_COUNT_ROWS: Final = (
    ("Allocations", "allocation"),
    ("Active allocs", "active"),
    ("GPU reserved segments", "segment"),
    ("Non-releasable allocs", "inactive_split"),
)
_POOLS: Final = (
    ("", "all"),
    ("      from large pool", "large_pool"),
    ("      from small pool", "small_pool"),
)
_WIDTH: Final = 83


def format_bytes(size_bytes: int) -> str:
    """Size in the unit in which PyTorch's own table would write it."""
    amount, unit = size_bytes, "B"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 768 * 1024:
            break
        amount, unit = amount // 1024, larger
    return f"{amount} {unit}"


def _row(label: str, cells: tuple[str, str, str, str]) -> str:
    return f"| {label:<21} |" + "|".join(f" {cell:>12} " for cell in cells) + "|"


def _stat_row(label: str, stat: Mapping[str, int], *, is_bytes: bool) -> str:
    current, peak, allocated, freed = (
        format_bytes(stat[leaf]) if is_bytes else str(stat[leaf])
        for leaf in ("current", "peak", "allocated", "freed")
    )
    return _row(label, (current, peak, allocated, freed))


def memory_summary(stats: Mapping[str, Any], device_name: str) -> str:
    """Table of the counters of one device, from the nested form of ``_cuda_memoryStats``."""
    thick, thin = f"|{'=' * _WIDTH}|", f"|{'-' * _WIDTH}|"
    lines = [
        thick,
        f"|{f'PyTorch memory summary, device {device_name}':^{_WIDTH}}|",
        thin,
        f"|{'OOMs: ' + str(stats['num_ooms']):^41}|"
        f"{'allocation retries: ' + str(stats['num_alloc_retries']):^41}|",
        thick,
        _row("Metric", ("Cur Usage", "Peak Usage", "Tot Alloc", "Tot Freed")),
    ]
    for rows, is_bytes in ((_BYTE_ROWS, True), (_COUNT_ROWS, False)):
        for label, name in rows:
            lines.append(thin)
            lines.extend(
                _stat_row(prefix or label, stats[name][pool], is_bytes=is_bytes)
                for prefix, pool in _POOLS
            )
    lines.append(thick)
    return "\n".join(lines) + "\n"
