from __future__ import annotations

from tests.support.made_recordings import KIB, MIB
from vramscope_analysis.replay.past.uncertain_block import UncertainBlock


def uncertain(space_bytes: int = 3 * MIB, unsplit_bytes: int = MIB) -> UncertainBlock:
    return UncertainBlock(0, 4 * MIB, 9, (0, (0, 0)), space_bytes, unsplit_bytes)


def test_a_block_may_have_kept_what_leaves_a_free_block_of_its_pool() -> None:
    assert uncertain().kept_bytes() == (0, MIB)
    assert uncertain(MIB + 512 * KIB).kept_bytes() == (0, 512 * KIB - 512)
    assert uncertain(MIB).kept_bytes() == (0, 0)


def test_sizes_that_the_free_space_cannot_have_had_are_excluded() -> None:
    one = uncertain()
    one.exclude(0, MIB)
    one.exclude(4 * MIB, 5 * MIB)
    assert one.kept_bytes() == (0, MIB)
    one.exclude(3 * MIB - 512, 3 * MIB)
    assert one.kept_bytes() == (0, MIB)
    one.exclude(3 * MIB, 3 * MIB + 512)
    assert one.kept_bytes() == (1024, MIB)
    one.exclude(0, 2 * MIB + 512)
    assert one.kept_bytes() == (1024, MIB - 512)
    # Nothing explains this any more: no better than not to know.
    one.exclude(0, 3 * MIB)
    assert one.kept_bytes() == (0, MIB)
