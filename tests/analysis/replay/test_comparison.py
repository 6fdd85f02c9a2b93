from __future__ import annotations

from typing import Any

from vramscope_analysis.replay.comparison import KEPT_MISMATCHES, Comparison, Mismatch
from vramscope_analysis.replay.placement import SegmentEvent

A: SegmentEvent = ("segment_free", 0x1000, 2048, 0)
B: SegmentEvent = ("segment_free", 0x2000, 4096, 0)
C: SegmentEvent = ("segment_alloc", 0x3000, 8192, 7)


def test_equal_events_are_no_mismatch() -> None:
    comparison = Comparison()

    comparison.segments(5, [A, B], [A, B])
    comparison.segments(6, [], [])

    assert (comparison.segment_mismatches, comparison.first) == (0, [])


def test_one_missing_or_extra_event_is_one_mismatch() -> None:
    comparison = Comparison()

    comparison.segments(5, [A, B, C], [A, C])
    comparison.segments(6, [A], [A, B])

    assert comparison.segment_mismatches == 2
    assert comparison.first == [
        Mismatch(5, "segment", "segment_free of 4096 B at 0x2000 on stream 0", "nothing"),
        Mismatch(6, "segment", "nothing", "segment_free of 4096 B at 0x2000 on stream 0"),
    ]


def test_the_order_counts() -> None:
    comparison = Comparison()

    comparison.segments(5, [A, B], [B, A])

    assert comparison.segment_mismatches == 2


def test_only_the_first_mismatches_are_kept() -> None:
    comparison = Comparison()

    for event in range(KEPT_MISMATCHES + 5):
        comparison.block(event, "a block at 0x1", "out of memory")

    assert comparison.block_mismatches == KEPT_MISMATCHES + 5
    assert [mismatch.event for mismatch in comparison.first] == list(range(KEPT_MISMATCHES))


def segment(address: int, **changes: Any) -> dict[str, Any]:
    return {
        "address": address,
        "total_size": 1024,
        "allocated_size": 512,
        "active_size": 512,
        "requested_size": 500,
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "blocks": [
            {
                "address": address,
                "size": 512,
                "requested_size": 500,
                "state": "active_allocated",
            },
            {"address": address + 512, "size": 512, "requested_size": 8, "state": "inactive"},
        ],
        **changes,
    }


def test_segments_at_the_end_are_compared_as_a_whole() -> None:
    comparison = Comparison()
    other_blocks = segment(0x3000)
    other_blocks["blocks"][0]["state"] = "active_pending_free"

    comparison.final(
        9,
        [segment(0x1000), segment(0x2000, stream=7), segment(0x3000), segment(0x4000)],
        [segment(0x1000), segment(0x2000), other_blocks, segment(0x5000)],
    )

    assert comparison.final_mismatches == 4
    assert [(m.expected, m.got) for m in comparison.first] == [
        ("stream of segment 0x2000: 7", "stream of segment 0x2000: 0"),
        ("state of block 0x3000: active_allocated", "state of block 0x3000: active_pending_free"),
        ("segment 0x4000", "no segment 0x4000"),
        ("no segment 0x5000", "segment 0x5000"),
    ]


def test_what_a_free_block_was_last_asked_for_and_stacks_do_not_count() -> None:
    comparison = Comparison()
    other = segment(0x1000, frames=[])
    other["blocks"][1]["requested_size"] = 0

    comparison.final(9, [segment(0x1000)], [other])

    assert comparison.final_mismatches == 0
    missing = segment(0x1000)
    del missing["blocks"][1]
    comparison.final(9, [segment(0x1000)], [missing])
    assert comparison.final_mismatches == 1
