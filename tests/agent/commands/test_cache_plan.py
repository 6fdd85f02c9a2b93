"""What empty_cache gives back, by its rules, segment by segment."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope.commands.cache_plan import CachePlan, plan_empty_cache

MIB = 1 << 20


def segment(blocks: str, *, size_mib: int = 2, **more: Any) -> dict[str, Any]:
    """A segment of equal blocks: ``A`` allocated, ``P`` pending, ``-`` free."""
    states = {"A": "active_allocated", "P": "active_pending_free", "-": "inactive"}
    return {
        "total_size": len(blocks) * size_mib * MIB,
        "segment_pool_id": (0, 0),
        "blocks": [{"size": size_mib * MIB, "state": states[letter]} for letter in blocks],
        **more,
    }


@pytest.mark.parametrize(
    ("blocks", "returnable", "stranded"),
    [
        ("-", 2, 0),
        ("A", 0, 0),
        ("A-", 0, 2),
        ("-A-", 0, 4),
        # empty_cache waits for other streams first, and the pieces merge.
        ("P", 2, 0),
        ("-P-", 6, 0),
        ("PA", 0, 2),
    ],
)
def test_a_segment_goes_whole_or_not_at_all(blocks: str, returnable: int, stranded: int) -> None:
    plan = plan_empty_cache([segment(blocks)])
    assert plan == CachePlan(
        returnable_bytes=returnable * MIB,
        returnable_segments=int(returnable > 0),
        stranded_bytes=stranded * MIB,
        stranded_segments=int(stranded > 0),
        segments=1,
    )


@pytest.mark.parametrize(
    ("blocks", "pages"),
    [
        ("-" * 10, 1),
        ("A" + "-" * 9, 0),
        ("A" + "-" * 19, 1),
        # 3 blocks in, free for 27: pages 10-20 and 20-30.
        ("AAA" + "-" * 27, 2),
        ("-" * 15 + "A" + "-" * 14, 2),
        ("AAAAA" + "-" * 10 + "AAAAA", 0),
    ],
)
def test_an_expandable_segment_gives_whole_pages(blocks: str, pages: int) -> None:
    one = segment(blocks, is_expandable=True, page_bytes=20 * MIB)
    plan = plan_empty_cache([one])
    assert plan.returnable_bytes == pages * 20 * MIB
    free_bytes = (blocks.count("-")) * 2 * MIB
    assert plan.stranded_bytes == free_bytes - plan.returnable_bytes


def test_private_pools_are_kept() -> None:
    plan = plan_empty_cache([segment("-"), segment("-A", segment_pool_id=(0, 3))])
    assert plan == CachePlan(
        returnable_bytes=2 * MIB,
        returnable_segments=1,
        private_pool_bytes=2 * MIB,
        segments=2,
    )


def test_nothing_reserved_is_nothing_to_return() -> None:
    assert plan_empty_cache([]) == CachePlan()
