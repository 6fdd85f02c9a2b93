"""Blocks are known by the lines that allocated them, and by when they came."""

from __future__ import annotations

from typing import Any

from vramscope.growth.live_blocks import MAX_FRAMES, LiveBlocks, Source


def block(address: int, size: int = 512, line: int = 0, state: str = "active_allocated") -> Any:
    frames = [{"filename": "train.py", "line": line, "name": "main"}] if line else []
    return {
        "address": address,
        "size": size,
        "requested_size": size,
        "state": state,
        "frames": frames,
    }


def segments(*blocks: Any) -> list[dict[str, Any]]:
    return [{"blocks": list(blocks)}]


def by_line(blocks: LiveBlocks, look: int) -> dict[int, int]:
    """How many are live by line; 0 is without, -1 from before the recording."""
    counts: dict[int, int] = {}
    for number, count in blocks.counts_at_looks[look].items():
        source = blocks.sources[number]
        line = source.stack[0].line if source.stack else -source.is_old
        counts[line] = counts.get(line, 0) + count
    return counts


def test_by_line_and_look() -> None:
    blocks = LiveBlocks(segments(block(0)))
    blocks.add(segments(block(0), block(512, line=7)))
    blocks.add(segments(block(0), block(512, line=7), block(1024, line=7), block(9, line=8)))
    assert by_line(blocks, 0) == {-1: 1, 7: 1}
    assert by_line(blocks, 1) == {-1: 1, 7: 2, 8: 1}
    assert {address: each.born for address, each in blocks.blocks.items()} == {
        0: -1,
        512: 0,
        1024: 1,
        9: 1,
    }


def test_what_comes_without_lines_is_of_a_backward_pass_and_told_by_its_size() -> None:
    blocks = LiveBlocks(segments(block(0), block(512)))
    # One of them was freed and another size came to its place; a third is new.
    blocks.add(segments(block(0), block(512, size=1024), block(2048)))
    sources = {address: blocks.sources[each.source] for address, each in blocks.blocks.items()}
    assert sources[0] == Source((), 512, True)
    assert sources[512] == Source((), 1024, False)
    assert sources[2048] == Source((), 512, False)


def test_another_tensor_at_an_address_is_new() -> None:
    blocks = LiveBlocks(segments())
    blocks.add(segments(block(0, line=7)))
    blocks.add(segments(block(0, line=8)))
    blocks.add(segments(block(0, line=8)))
    assert blocks.blocks[0].born == 1


def test_free_blocks_do_not_count_and_those_on_their_way_do() -> None:
    blocks = LiveBlocks(segments())
    blocks.add(
        segments(block(0, line=7, state="inactive"), block(8, line=7, state="active_pending_free"))
    )
    assert by_line(blocks, 0) == {7: 1}


def test_equal_lists_of_frames_are_one_source_and_long_ones_are_cut() -> None:
    blocks = LiveBlocks(segments())
    deep = [{"filename": "train.py", "line": line, "name": "f"} for line in range(1, 200)]
    one, two = block(0), block(512)
    one["frames"], two["frames"] = deep, [dict(frame) for frame in deep]
    blocks.add(segments(one, two))
    assert list(blocks.counts_at_looks[0].values()) == [2]
    assert len(blocks.sources[blocks.blocks[0].source].stack) == MAX_FRAMES


def test_what_is_gone_is_forgotten_and_the_rest_keeps_its_lines() -> None:
    blocks = LiveBlocks(segments())
    blocks.add(segments(block(0, line=7), block(512, line=7), block(1024, line=7)))
    # Without a recording there are no lines.
    blocks.drop_gone(segments(block(0), block(512, state="inactive"), block(1024, size=2048)))
    (left,) = blocks.blocks
    assert left == 0
    assert blocks.sources[blocks.blocks[0].source].stack[0].line == 7
    assert by_line(blocks, 0) == {7: 3}


def test_another_block_at_the_place_of_one_has_no_lines_where_pytorch_keeps_them() -> None:
    blocks = LiveBlocks(segments(block(2048)))
    blocks.add(segments(block(0, line=7), block(512, line=7), block(2048)))
    blocks.drop_gone(segments(block(0, line=7), block(512), block(2048)))
    assert set(blocks.blocks) == {0, 2048}
