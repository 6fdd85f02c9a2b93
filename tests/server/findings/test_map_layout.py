"""A map of an agent says the same of pieces as the segments that it is of."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_moments import recorded
from tests.support.made_segments import MIB, many_segments, segment
from tests.support.recorded_map import GivenOwners, MapOfLooks, recorded_segments
from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.evidence.window_layout import window_layout
from vramscope_server.findings.map_layout import map_layout
from vramscope_server.maps.current_map import CurrentMap

HERE = 0x7F0000000000
SECOND_NS = 10**9


class Watched:
    """A map that is looked at, step after step."""

    def __init__(self, owners: GivenOwners | None = None) -> None:
        self.source, self.kept = MapOfLooks(owners, limit_bytes=3 << 30), CurrentMap()
        self.now_ns = 100 * SECOND_NS

    def look(self, segments: list[dict[str, Any]], step: int, after_s: int = 1) -> MemoryLayout:
        self.now_ns += after_s * SECOND_NS
        self.source.look(segments, step, self.now_ns)
        frame = self.source.feed.next_frame(1 << 24)
        assert frame is not None
        assert self.kept.take(frame) is not None
        return map_layout(self.kept.parts())


@pytest.mark.parametrize(
    "name",
    [
        "varlen__default",
        "varlen__expandable",
        "streams__default",
        "cuda_graphs__default",
        "unet__split64",
        "pools__expandable",
    ],
)
def test_of_recorded_jobs_it_is_the_layout_of_their_last_moment(name: str) -> None:
    memory = recorded(name)
    expected = window_layout(memory, memory.last_moment)
    layout = Watched().look(recorded_segments(name), 7)
    assert (layout.step, layout.is_step_end, layout.limit_bytes) == (7, True, 3 << 30)
    told, wanted = (
        {(p.pool, p.stream): (p.reserved_bytes, p.free_bytes, p.largest_bytes) for p in each.pools}
        for each in (layout, expected)
    )
    assert told == wanted


def test_what_was_there_for_twenty_steps_stays_and_so_does_what_is_known_to() -> None:
    old, weight, grad = HERE, HERE + (1 << 30), HERE + (2 << 30)
    owners = GivenOwners({weight: (1, "fc.weight"), grad: (2, "fc.weight.grad")})
    watched = Watched(owners)
    empty = [segment(old, "f40"), segment(weight, "f40"), segment(grad, "f40")]
    held = [segment(old, "a1 f39"), segment(weight, "a2 f38"), segment(grad, "a4 f36")]
    assert watched.look(empty, 1).pinned_bytes == 0
    assert watched.look(held, 2).pinned_bytes == 38 * MIB
    assert watched.look(held, 21).pinned_bytes == 38 * MIB
    later = watched.look(held, 22)
    assert later.pinned_bytes == 77 * MIB
    assert [(pin.name, pin.pinned_bytes // MIB) for pin in later.pins] == [
        ("", 39),
        ("fc.weight", 38),
    ]


def test_what_was_there_at_the_first_look_stays_once_that_is_long_ago() -> None:
    watched = Watched()
    held = [segment(HERE, "a1 f39")]
    assert watched.look(held, 1).pinned_bytes == 0
    assert watched.look([*held, segment(HERE + (1 << 30), "f2")], 2, 9).pinned_bytes == 0
    assert watched.look([*held, segment(HERE + (1 << 30), "f4")], 3, 1).pinned_bytes == 39 * MIB


def test_a_block_that_waits_for_a_stream_goes() -> None:
    watched = Watched()
    watched.look([segment(HERE, "f40")], 1)
    waits = [segment(HERE, "p1 f39")]
    watched.look(waits, 2)
    assert watched.look([*waits, segment(HERE + (1 << 30), "f2")], 90).pinned_bytes == 0


def test_a_block_without_an_owner_is_called_by_its_line() -> None:
    held = segment(HERE, "a1 f39")
    held["blocks"][0]["frames"] = [
        {"filename": "/usr/lib/torch/nn/functional.py", "line": 9, "name": "linear"},
        {"filename": "/home/ada/train.py", "line": 56, "name": "forward"},
    ]
    watched = Watched(GivenOwners({}))
    watched.look([held], 1)
    assert watched.look([held, segment(HERE + (1 << 30), "f2")], 2, 20).pins[0].name == (
        "train.py:56 forward"
    )


def test_of_blocks_shown_as_one_nobody_knows_where_they_lie() -> None:
    small = many_segments(3, 9000, segment_type="small")
    assert Watched().look(small, 1).is_exact
    large = Watched().look(many_segments(3, 9000), 1)
    assert not large.is_exact
    assert large.free_bytes == 3 * 9000 * MIB // 4


def test_segments_come_in_any_order() -> None:
    watched = Watched()
    layout = watched.look([segment(HERE + (1 << 30), "a1 f3"), segment(HERE, "f9 a2")], 1)
    assert (layout.free_bytes, layout.largest_bytes) == (12 * MIB, 9 * MIB)


def test_an_empty_map_has_no_pools() -> None:
    layout = Watched().look([], 3)
    assert (layout.pools, layout.step) == ((), 3)
