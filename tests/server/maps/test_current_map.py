"""The map that a server keeps is the one that the agent sees."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec import structs

from tests.support.made_segments import random_segments, segment
from tests.support.recorded_map import GivenOwners, MapOfLooks
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import MapWanted
from vramscope_server.maps.current_map import CurrentMap

HERE = 0x7F0000000000


def by_address(payload: dict[str, Any]) -> dict[int, list[tuple[int, int, str]]]:
    """Size, state and owner of the blocks of each segment."""
    segments, blocks, texts = payload["segments"], payload["blocks"], payload["texts"]
    found: dict[int, list[tuple[int, int, str]]] = {}
    start = 0
    for address, count in zip(segments["address"], segments["blocks"], strict=True):
        rows = range(start, start + count)
        found[address] = [
            (
                blocks["size"][i],
                blocks["state"][i],
                "" if blocks["owner"][i] < 0 else texts[blocks["owner"][i]],
            )
            for i in rows
        ]
        start += count
    assert start == len(blocks["size"])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_deltas_add_up_to_what_a_whole_frame_says(seed: int) -> None:
    rng = random.Random(seed)
    owners = GivenOwners({0x1000000000 + i * (64 << 20): (1, f"layer.{i}") for i in range(6)})
    source, kept = MapOfLooks(owners), CurrentMap()
    for step in range(20):
        segments = random_segments(rng)
        assert kept.take(source.frame(segments, step)) is not None
        whole = MapOfLooks(owners)
        fresh = CurrentMap()
        fresh.take(whole.frame(segments, step))
        assert by_address(kept.whole()) == by_address(fresh.whole())
        assert kept.whole()["step"] == step
        assert kept.held_bytes > 0 or not segments


def test_what_is_handed_on_is_the_delta() -> None:
    source, kept = MapOfLooks(), CurrentMap()
    kept.take(source.frame([segment(HERE, "a1"), segment(HERE + (1 << 30), "a1")]))
    news = kept.take(source.frame([segment(HERE, "f1")]))
    assert news is not None
    assert (news["number"], news["base"], news["gone"]) == (2, 1, [HERE + (1 << 30)])
    assert news["segments"]["address"] == [HERE]
    assert kept.whole()["base"] == 0
    assert kept.whole()["segments"]["address"] == [HERE]


def test_a_frame_whose_base_never_came_changes_nothing() -> None:
    source, kept = MapOfLooks(), CurrentMap()
    first = source.frame([segment(HERE, "a1")])
    source.frame([segment(HERE, "a1 a1")])
    third = source.frame([segment(HERE, "a1 a1 a1")])
    assert kept.take(third) is None
    kept.take(first)
    assert kept.take(third) is None
    assert kept.take(structs.replace(first, number=2, base=1, first_text=3)) is None
    assert kept.number == 1
    source.feed.wanted(MapWanted(1.0, full=True))
    whole = source.feed.next_frame(1 << 20)
    assert whole is not None
    assert kept.take(whole) is not None
    assert by_address(kept.whole()) == {HERE: [(1 << 20, 1, "")] * 3}


def test_a_frame_that_cannot_be_leaves_the_map_as_it_was() -> None:
    source, kept = MapOfLooks(), CurrentMap()
    kept.take(source.frame([segment(HERE, "a1")]))
    before = kept.whole()
    with pytest.raises(ProtocolError, match="all texts in a frame without a base"):
        kept.take(structs.replace(source.frame([segment(HERE, "f1")]), base=0, first_text=1))
    with pytest.raises(ProtocolError, match="fill their segment"):
        kept.take(structs.replace(source.frame([segment(HERE, "f2")]), blocks=b"\1" * 42))
    assert kept.whole() == before


def test_a_map_cannot_grow_without_end() -> None:
    kept = CurrentMap()
    source = MapOfLooks()
    kept.take(source.frame([segment(HERE, "a1")]))

    def grow() -> None:
        for number in range(2, 40):
            many = [segment((number << 44) + i * (1 << 20), "a1") for i in range(3000)]
            fresh = MapOfLooks().frame(many)
            kept.take(structs.replace(fresh, number=number, base=number - 1))

    with pytest.raises(ProtocolError, match="a map of at most"):
        grow()
    assert kept.number > 10


def test_texts_are_bounded_by_what_a_page_can_take_in() -> None:
    kept = CurrentMap()
    texts = ["\x01" * 4096] * 40  # six bytes each where they are written as JSON
    frame = structs.replace(MapOfLooks().frame([segment(HERE, "a1")]), texts=texts)
    kept.take(frame)
    for number in range(1, 17):
        told = number * len(texts)
        frame = structs.replace(frame, number=number + 1, base=number, first_text=told)
        kept.take(frame)
    frame = structs.replace(frame, number=18, base=17, first_text=17 * len(texts))
    with pytest.raises(ProtocolError, match="bytes of texts"):
        kept.take(frame)


def test_segments_that_are_gone_are_bounded() -> None:
    frame = MapOfLooks().frame([segment(HERE, "a1")])
    with pytest.raises(ProtocolError, match="segments that are gone"):
        CurrentMap().take(structs.replace(frame, gone=[1] * 100_000))


def test_parts_stay_as_they_were_while_frames_come() -> None:
    source, kept = MapOfLooks(), CurrentMap()
    kept.take(source.frame([segment(HERE + (1 << 30), "a3"), segment(HERE, "a1 f1")], 1))
    parts = kept.parts()
    kept.take(source.frame([segment(HERE, "f2")], 2))
    assert {row[0]: table["state"].tolist() for row, table in parts.segments} == {
        HERE: [1, 0],
        HERE + (1 << 30): [1],
    }
    assert parts.head["step"] == 1
    assert [table["state"].tolist() for _, table in kept.parts().segments] == [[0]]
