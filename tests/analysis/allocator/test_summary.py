from __future__ import annotations

import pytest

from vramscope_analysis.allocator import CachingAllocator, memory_summary
from vramscope_analysis.allocator.summary import format_bytes


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (700 << 10, "716800 B"),
        (800 << 10, "800 KiB"),
        (800 << 20, "800 MiB"),
    ],
)
def test_sizes_read_as_pytorch_writes_them(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


def test_the_table_holds_the_counters_and_is_rectangular() -> None:
    model = CachingAllocator(64 << 20)
    model.malloc(3 << 20)
    model.free(model.malloc(1000))

    lines = memory_summary(model.memory_stats(), "0 (emulated)").splitlines()

    assert {len(line) for line in lines} == {len(lines[0])}
    cells = {line.split("|")[1].strip(): line.split("|")[2:6] for line in lines}
    reserved = [cell.strip() for cell in cells["GPU reserved memory"]]
    assert reserved == ["22528 KiB", "22528 KiB", "22528 KiB", "0 B"]
    assert [cell.strip() for cell in cells["Allocations"]] == ["1", "2", "2", "1"]
    assert "device 0 (emulated)" in lines[1]
