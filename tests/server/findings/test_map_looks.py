"""A map is asked for where memory lies in pieces, once a minute, of a few ranks at a time."""

from __future__ import annotations

import pytest

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_server.findings import map_looks
from vramscope_server.findings.judging import Found, Judgement
from vramscope_server.findings.map_looks import MapLooks


class Maps:
    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def want_look(self, run_id: str, rank: int) -> None:
        self.asked.append((run_id, rank))


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def judgement(*ranks: int, kind: str = "fragmentation", subject: str = "") -> Judgement:
    finding = Finding(kind, "info", "In pieces.", ranks=ranks, subject=subject)
    return Judgement("r", frozenset(ranks), [Found("judge", finding)])


def test_each_rank_is_asked_once_a_minute() -> None:
    maps, clock = Maps(), Clock()
    looks = MapLooks(maps, clock)
    looks.look(judgement(2, 0))
    looks.look(judgement(0, 2, 3, kind="thrash"))
    assert maps.asked == [("r", 0), ("r", 2), ("r", 3)]
    clock.now_s += 59.0
    looks.look(judgement(0))
    assert len(maps.asked) == 3
    clock.now_s += 1.0
    looks.look(judgement(0))
    assert maps.asked[3:] == [("r", 0)]


def test_nobody_is_asked_for_what_a_map_does_not_tell() -> None:
    maps = Maps()
    looks = MapLooks(maps, Clock())
    looks.look(judgement(0, kind="leak"))
    looks.look(judgement(0, subject="allocator settings"))
    looks.look(Judgement("r", frozenset({0})))
    assert maps.asked == []


def test_of_many_ranks_some_are_asked_at_a_time_and_each_in_its_turn() -> None:
    maps, clock = Maps(), Clock()
    looks = MapLooks(maps, clock)
    everyone = judgement(*range(20))
    looks.look(everyone)
    assert len(maps.asked) == 8
    for _ in range(3):
        looks.look(everyone)
    assert [rank for _, rank in maps.asked] == list(range(20))


def test_ranks_that_were_asked_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = Maps()
    looks = MapLooks(maps, Clock())
    monkeypatch.setattr(map_looks, "_MOST_RANKS", 2)
    for rank in range(5):
        looks.look(judgement(rank))
    assert list(looks._asked_s) == [("r", 3), ("r", 4)]
