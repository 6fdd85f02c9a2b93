"""Frames of one connection: a delta says what changed, and whoever applies it has it all."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.made_segments import MIB, many_segments, random_segments, segment
from tests.support.recorded_map import GivenOwners, MapOfLooks, recorded_segments
from vramscope.memory_map.map_feed import MapFeed
from vramscope_protocol.codec import MAX_MESSAGE_BYTES, encode
from vramscope_protocol.map_columns import (
    BLOCK_COLUMNS,
    SEGMENT_COLUMNS,
    SUMMARISED,
    unpack_columns,
)
from vramscope_protocol.messages import MapFrame, MapWanted

HERE = 0x7F0000000000


class Reader:
    """Applies frames the plainest way: rows of segments and blocks by address."""

    def __init__(self) -> None:
        self.segments: dict[int, tuple[dict[str, int], list[dict[str, int]]]] = {}
        self.texts: list[str] = []
        self.number = 0

    def take(self, frame: MapFrame) -> None:
        if frame.base == 0:
            self.segments, self.texts = {}, []
        else:
            assert frame.base == self.number
        assert frame.first_text == len(self.texts)
        self.texts += frame.texts
        for address in frame.gone:
            del self.segments[address]
        columns = unpack_columns(SEGMENT_COLUMNS, frame.segments, frame.segment_count)
        block_columns = unpack_columns(BLOCK_COLUMNS, frame.blocks, frame.block_count)
        blocks = [
            {name: block_columns[name][i] for name in BLOCK_COLUMNS}
            for i in range(frame.block_count)
        ]
        start = 0
        for i in range(frame.segment_count):
            row = {name: columns[name][i] for name in SEGMENT_COLUMNS}
            end = start + row["blocks"]
            self.segments[row["address"]] = (row, blocks[start:end])
            start = end
        assert start == frame.block_count
        self.number = frame.number

    def plain(self) -> list[tuple[int, int, list[tuple[int, int]]]]:
        return [
            (address, row["size"], [(block["size"], block["state"]) for block in blocks])
            for address, (row, blocks) in sorted(self.segments.items())
        ]


def plain(segments: list[dict[str, Any]]) -> list[tuple[int, int, list[tuple[int, int]]]]:
    codes = {"inactive": 0, "active_allocated": 1, "active_pending_free": 2}
    return [
        (
            each["address"],
            each["total_size"],
            [(block["size"], codes[block["state"]]) for block in each["blocks"]],
        )
        for each in sorted(segments, key=lambda each: each["address"])
    ]


@pytest.mark.parametrize("seed", range(10))
def test_deltas_say_exactly_what_a_whole_frame_would(seed: int) -> None:
    rng = random.Random(seed)
    source, reader = MapOfLooks(), Reader()
    for step in range(25):
        segments = random_segments(rng)
        owned = {s["address"]: (rng.randint(0, 3), f"w{rng.randint(0, 5)}") for s in segments}
        owners = GivenOwners(owned)
        source.owners = lambda owners=owners: owners  # type: ignore[misc]
        reader.take(source.frame(segments, step))
        assert reader.plain() == plain(segments)
        for address, (row, blocks) in reader.segments.items():
            if blocks[0]["state"]:
                assert blocks[0]["category"] == owned[address][0]
                assert reader.texts[blocks[0]["owner"]] == owned[address][1]
            assert row["blocks"] == len(blocks)
        if rng.random() < 0.1:
            source.feed.wanted(MapWanted(30, full=True))


def test_a_delta_holds_only_what_changed() -> None:
    source = MapOfLooks()
    first = source.frame([segment(HERE, "a1 f1"), segment(HERE + 8 * MIB, "a1")])
    assert (first.number, first.base, first.segment_count) == (1, 0, 2)
    second = source.frame([segment(HERE, "a1 a1"), segment(HERE + 8 * MIB, "a1")])
    assert (second.number, second.base) == (2, 1)
    assert (second.segment_count, second.block_count, second.gone) == (1, 2, [])
    third = source.frame([segment(HERE, "a1 a1")])
    assert (third.base, third.segment_count, third.gone) == (2, 0, [HERE + 8 * MIB])


def test_owners_that_change_are_news_even_where_no_block_is() -> None:
    segments = [segment(HERE, "a1 f1"), segment(HERE + 8 * MIB, "a1")]
    source = MapOfLooks(GivenOwners({HERE: (1, "fc.weight")}))
    assert source.frame(segments).texts == ["fc.weight"]
    newer = GivenOwners({HERE: (1, "fc.weight"), HERE + 8 * MIB: (3, "exp_avg of fc.weight")})
    source.owners = lambda: newer
    frame = source.frame(segments)
    assert frame.segment_count == 1
    assert (frame.first_text, frame.texts) == (1, ["exp_avg of fc.weight"])


def test_the_same_look_is_sent_once_and_none_while_nobody_looks() -> None:
    source = MapOfLooks()
    source.frame([segment(HERE, "a1")])
    assert source.feed.next_frame(MAX_MESSAGE_BYTES) is None
    source.is_watched = False
    source.look([segment(HERE, "a1 a1")])
    assert source.feed.next_frame(MAX_MESSAGE_BYTES) is None


def test_looks_that_a_slow_connection_misses_are_never_made_into_frames() -> None:
    source, reader = MapOfLooks(), Reader()
    reader.take(source.frame([segment(HERE, "a1 f1")]))
    source.look([segment(HERE, "a1 a1")])
    source.look([segment(HERE, "f1 a1"), segment(HERE + 8 * MIB, "a1")])
    segments = [segment(HERE + 8 * MIB, "a1")]
    frame = source.frame(segments)
    assert frame.base == 1
    reader.take(frame)
    assert reader.plain() == plain(segments)


def test_a_server_that_misses_the_base_gets_everything() -> None:
    source = MapOfLooks(GivenOwners({HERE: (1, "w")}))
    segments = [segment(HERE, "a1")]
    source.frame(segments)
    source.feed.wanted(MapWanted(30.0, full=True))
    assert source.asked == [30.0]
    frame = source.feed.next_frame(MAX_MESSAGE_BYTES)
    assert frame is not None
    assert (frame.number, frame.base, frame.segment_count, frame.texts) == (2, 0, 1, ["w"])
    source.feed.wanted(MapWanted(30.0))
    assert source.feed.next_frame(MAX_MESSAGE_BYTES) is None


def test_a_job_that_does_not_let_itself_be_watched_is_not() -> None:
    source = MapOfLooks()
    feed = MapFeed(source, lambda: False)
    feed.wanted(MapWanted(30.0, full=True))
    assert source.asked == []


def test_why_there_is_no_map_is_a_frame_and_the_map_comes_back() -> None:
    source = MapOfLooks()
    source.frame([segment(HERE, "a1")])
    last = source.latest
    assert last is not None
    source.latest = type(last)(5, None, False, 5, {}, why_not="the job has not used the device yet")
    frame = source.feed.next_frame(MAX_MESSAGE_BYTES)
    assert frame is not None
    assert frame.why_not == "the job has not used the device yet"
    assert frame.gone == [HERE]
    after = source.frame([segment(HERE, "a1")])
    assert (after.base, after.why_not, after.segment_count) == (2, "", 1)


@pytest.mark.parametrize(("count", "blocks"), [(1, 50_000), (100, 500), (3000, 8), (20_000, 1)])
def test_a_frame_stays_below_a_mebibyte_and_says_what_it_leaves_out(
    count: int, blocks: int
) -> None:
    owned = {HERE + i * blocks * MIB: (1, f"layer.{i}." + 150 * "x") for i in range(count)}
    source, reader = MapOfLooks(GivenOwners(owned)), Reader()
    segments = many_segments(count, blocks)
    frame = source.frame(segments)
    assert len(encode(frame)) <= MAX_MESSAGE_BYTES
    reader.take(frame)
    if count * blocks > 20_000:
        assert frame.summary
    for row, rows in reader.segments.values():
        assert sum(block["size"] for block in rows) == row["size"]
        assert sum(block["count"] for block in rows) == blocks
        assert bool(row["flags"] & SUMMARISED) == (len(rows) < blocks)


def test_texts_that_did_not_fit_come_in_later_frames() -> None:
    count = 200
    owned = {HERE + i * 2 * MIB: (1, f"{i:03} " + 1000 * "x") for i in range(count)}
    source, reader = MapOfLooks(GivenOwners(owned)), Reader()
    segments = many_segments(count, 2)
    frames = 0
    while frames == 0 or any(rows[0]["owner"] < 0 for _, rows in reader.segments.values()):
        reader.take(source.frame(segments, frames))
        frames += 1
        assert frames < 10
    assert frames > 1
    for address, (_, rows) in reader.segments.items():
        assert reader.texts[rows[0]["owner"]] == owned[address][1]


def test_blocks_of_the_same_stack_share_its_text() -> None:
    frames = [{"filename": "train.py", "line": 3, "name": "step"}]
    traced = segment(HERE, "a1 f1 a1")
    for block in traced["blocks"]:
        block["frames"] = frames
    source, reader = MapOfLooks(), Reader()
    reader.take(source.frame([traced]))
    assert reader.texts == ["train.py:3 step"]
    assert [block["stack"] for block in reader.segments[HERE][1]] == [0, -1, 0]


@pytest.mark.parametrize(
    "name", ["oom__default", "pools__expandable", "streams__default", "cuda_graphs__combined"]
)
def test_recorded_segments_arrive_as_they_were(name: str) -> None:
    segments, reader = recorded_segments(name), Reader()
    reader.take(MapOfLooks().frame(segments))
    assert reader.plain() == plain(segments)
    for each in segments:
        row, _ = reader.segments[each["address"]]
        assert row["stream"] == each["stream"]
        assert (row["pool_owner"], row["pool_number"]) == tuple(each["segment_pool_id"])


@pytest.mark.expects_guarded_errors
def test_a_look_that_cannot_be_told_costs_one_frame() -> None:
    source = MapOfLooks()
    asked = 0

    def fails() -> None:
        nonlocal asked
        asked += 1
        raise RuntimeError("owners are gone")

    source.owners = fails
    source.look([segment(HERE, "a1")])
    assert source.feed.next_frame(MAX_MESSAGE_BYTES) is None
    assert source.feed.next_frame(MAX_MESSAGE_BYTES) is None
    assert asked == 1
    source.owners = lambda: None
    assert source.frame([segment(HERE, "a1")]).segment_count == 1
