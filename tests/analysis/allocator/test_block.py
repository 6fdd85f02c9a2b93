from __future__ import annotations

from vramscope_analysis.allocator import CachingAllocator


def test_a_block_tells_its_state_in_the_words_of_a_snapshot() -> None:
    model = CachingAllocator(1 << 30)
    block = model.malloc(100)
    model.record_stream(block, 1)

    states = [block.state]
    model.free(block)
    states.append(block.state)
    model.complete_free(block)
    states.append(block.state)

    assert states == ["active_allocated", "active_pending_free", "inactive"]
    assert repr(block) == f"Block({block.address:#x}, 2097152 B, inactive)"


def test_a_block_is_split_while_it_has_neighbours() -> None:
    model = CachingAllocator(1 << 30)
    block = model.malloc(100)
    assert block.is_split

    model.free(block)
    assert not block.is_split


def test_use_by_its_own_stream_delays_nothing() -> None:
    model = CachingAllocator(1 << 30)
    block = model.malloc(100, stream=4)
    model.record_stream(block, 4)

    model.free(block)

    assert block.state == "inactive"
