from __future__ import annotations

import time
from typing import Any

from tests.support.made_segments import MIB, segment
from vramscope.oom.block_sums import (
    MAX_PINNING,
    MAX_SIZES,
    free_blocks,
    live_by_size,
    live_by_stack,
)

FAR_S = time.perf_counter() + 1e6


def test_free_memory_is_told_by_pool_and_stream() -> None:
    segments = [
        segment(0, "a2 f8 a2 f4"),
        segment(1 << 30, "f16"),
        segment(2 << 30, "f1", stream=7, segment_type="small"),
        segment(3 << 30, "a1 f0.5", segment_pool_id=(0, 3)),
        segment(4 << 30, "a20"),
    ]
    rows = free_blocks(segments)
    assert [(row["pool"], row["stream"]) for row in rows] == [
        ("large", 0),
        ("small", 7),
        ("large (0, 3)", 0),
    ]
    default = rows[0]
    assert (default["bytes"], default["count"]) == (28 * MIB, 3)
    assert (default["largest_bytes"], default["returnable_bytes"]) == (16 * MIB, 16 * MIB)
    assert default["pinned_by"] == [{"requested_bytes": 2 * MIB - 8, "count": 2, "bytes": 4 * MIB}]
    # The segment of 20 MiB has no free piece, that of 16 no live block.
    assert default["largest_segment_bytes"] == 16 * MIB  # 2 + 8 + 2 + 4
    # A piece of half a MiB pins nothing that anybody would miss.
    assert rows[2]["pinned_by"] == []


def test_of_what_pins_the_largest_are_named() -> None:
    words = " ".join(f"a{size}" for size in range(1, 20))
    (row,) = free_blocks([segment(0, f"{words} f2")])
    assert len(row["pinned_by"]) == MAX_PINNING
    assert row["pinned_by"][0]["bytes"] == 19 * MIB


def test_an_expandable_segment_says_nothing_of_what_it_served() -> None:
    (row,) = free_blocks([segment(0, "a2 f8", is_expandable=True)])
    assert (row["largest_segment_bytes"], row["largest_bytes"]) == (0, 8 * MIB)


def test_blocks_that_wait_for_a_stream_are_live() -> None:
    rows = live_by_size([segment(0, "a2 p2 f2 a1")])
    assert rows == [
        {"requested_bytes": 2 * MIB - 8, "count": 2, "bytes": 4 * MIB},
        {"requested_bytes": MIB - 8, "count": 1, "bytes": MIB},
    ]


def test_the_rest_of_many_sizes_is_one_row() -> None:
    words = " ".join(f"a{size}" for size in range(1, MAX_SIZES + 4))
    rows = live_by_size([segment(0, words)])
    assert len(rows) == MAX_SIZES + 1
    assert rows[-1] == {"requested_bytes": None, "count": 3, "bytes": 6 * MIB}


def frames(*files: str) -> list[dict[str, Any]]:
    return [{"filename": file, "line": 3, "name": "f"} for file in files]


def test_live_memory_is_put_together_by_stack_and_named_by_the_jobs_own_line() -> None:
    torch_file = "/env/lib/site-packages/torch/nn/functional.py"
    made = segment(0, "a4 a4 a1 f2")
    for block in made["blocks"][:2]:
        block["frames"] = frames(torch_file, "/home/me/train.py")
    made["blocks"][2]["frames"] = []
    rows, is_complete = live_by_stack([made], FAR_S)
    assert is_complete
    assert (rows[0]["file"], rows[0]["bytes"], rows[0]["count"]) == (
        "/home/me/train.py",
        8 * MIB,
        2,
    )
    assert [line["file"] for line in rows[0]["frames"]] == [torch_file, "/home/me/train.py"]
    # What was there before the recording has no stack.
    assert (rows[1]["file"], rows[1]["line"], rows[1]["bytes"]) == ("", 0, MIB)


def test_without_a_recording_there_are_no_stacks() -> None:
    assert live_by_stack([segment(0, "a4 f2")], FAR_S) == ([], True)


def test_it_stops_when_the_time_is_over() -> None:
    made = segment(0, "a4")
    made["blocks"][0]["frames"] = frames("train.py")
    assert live_by_stack([made], time.perf_counter() - 1) == ([], False)
