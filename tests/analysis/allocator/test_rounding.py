from __future__ import annotations

import pytest

from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.allocator.rounding import round_size, segment_size

MIB = 1 << 20
DEFAULT = AllocatorSettings()


@pytest.mark.parametrize(
    ("requested", "rounded"),
    [(1, 512), (511, 512), (512, 512), (513, 1024), (MIB, MIB), (MIB + 1, MIB + 512)],
)
def test_blocks_are_multiples_of_512(requested: int, rounded: int) -> None:
    assert round_size(requested, DEFAULT) == rounded


@pytest.mark.parametrize(
    ("block", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
        (33 * MIB, 34 * MIB),
    ],
)
def test_segments_grow_in_three_steps(block: int, segment: int) -> None:
    assert segment_size(block, DEFAULT) == segment


def test_large_segment_size_is_a_setting() -> None:
    settings = AllocatorSettings(large_segment_bytes=64 * MIB)

    assert segment_size(3 * MIB, settings) == 64 * MIB


@pytest.mark.parametrize(
    ("requested", "rounded"),
    [
        # Divisions count above 512 B x divisions only.
        (1200, 1536),
        (4 * MIB, 4 * MIB),
        (4 * MIB + 1, 5 * MIB),
        (5 * MIB, 5 * MIB),
        (7 * MIB + 1, 8 * MIB),
    ],
)
def test_power_of_two_divisions(requested: int, rounded: int) -> None:
    settings = AllocatorSettings(roundup_power2_divisions=(4,) * 16)

    assert round_size(requested, settings) == rounded


def test_divisions_apply_to_their_own_power_of_two() -> None:
    divisions = (0, 0, 2, *(0,) * 12, 8)
    settings = AllocatorSettings(roundup_power2_divisions=divisions)

    assert round_size(3 * MIB + 1, settings) == 3 * MIB + 512
    assert round_size(4 * MIB + 1, settings) == 6 * MIB
    assert round_size((33 << 30) + 1, settings) == 36 << 30
    assert round_size((65 << 30) + 1, settings) == 72 << 30
