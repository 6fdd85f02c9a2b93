"""What holds more and more is told from what changes, and from what takes another's place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vramscope.growth.groups import Group, growing_groups, rise
from vramscope.growth.live_blocks import LiveBlocks

SIZE = 512


def looks_of(*counts: dict[int, int], old: Sequence[int] = ()) -> LiveBlocks:
    """Looks with so many blocks of each line; ``old``: how many there are without one."""
    left = list(old) or [0] * (len(counts) + 1)
    blocks = LiveBlocks(segments({}, left[0]))
    for count, older in zip(counts, left[1:], strict=True):
        blocks.add(segments(count, older))
    return blocks


def segments(counts: dict[int, int], old: int) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for line, count in counts.items():
        frames = [{"filename": "train.py", "line": line, "name": "main"}]
        made += [live(line * 10_000_000 + number * SIZE, frames) for number in range(count)]
    made += [live(number * SIZE, []) for number in range(old)]
    return [{"blocks": made}]


def live(address: int, frames: list[Any]) -> dict[str, Any]:
    return {"address": address, "size": SIZE, "state": "active_allocated", "frames": frames}


def grown(blocks: LiveBlocks) -> list[Group]:
    return growing_groups(blocks, range(blocks.looks))


def lines(blocks: LiveBlocks) -> list[int]:
    return [blocks.sources[group.source].stack[0].line for group in grown(blocks)]


def test_what_grows_the_fastest_first() -> None:
    blocks = looks_of({7: 1, 8: 1, 9: 5}, {7: 2, 8: 3, 9: 5}, {7: 3, 8: 5, 9: 5})
    assert lines(blocks) == [8, 7]
    first = grown(blocks)[0]
    assert first.counts_at_looks == [1, 3, 5]
    assert first.bytes_at_looks == [SIZE, 3 * SIZE, 5 * SIZE]
    assert (first.count, first.bytes) == (4, 4 * SIZE)
    assert [len(each) for each in first.addresses] == [2, 2]
    assert rise(first.bytes_at_looks) == 4 * SIZE


def test_one_rise_is_no_growth_and_neither_is_up_and_down() -> None:
    assert lines(looks_of({7: 1, 8: 1}, {7: 2, 8: 3}, {7: 2, 8: 2})) == []
    # A staircase is: twice more, and never less.
    assert lines(looks_of({7: 1}, {7: 2}, {7: 2}, {7: 3})) == [7]


def test_members_of_a_full_buffer_that_are_replaced_do_not_grow() -> None:
    blocks = looks_of({7: 1}, {7: 2}, {7: 3}, old=[10, 9, 8, 7])
    assert lines(blocks) == []
    # Where much more comes than goes, it does.
    blocks = looks_of({7: 10}, {7: 20}, {7: 30}, old=[10, 9, 8, 7])
    assert lines(blocks) == [7]


def test_what_old_blocks_of_the_size_go_for_is_told_by_all_sources() -> None:
    # Three old ones, of a model that goes, and as many of the next one from steady lines (8, 9):
    # what a third line keeps of each model grows all the same.
    blocks = looks_of({7: 1, 8: 0, 9: 0}, {7: 2, 8: 2, 9: 2}, {7: 3, 8: 2, 9: 2}, old=[5, 4, 0, 0])
    assert lines(blocks) == [7]


def test_what_was_there_before_the_recording_is_no_source_of_growth() -> None:
    assert grown(looks_of({}, {}, {}, old=[1, 1, 1, 1])) == []
