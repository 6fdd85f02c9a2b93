"""Stretches are told when they matter, once or twice each, and never too many."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope.phases.stretches import Source, Stretch, Stretches
from vramscope_protocol.series import FIRST_USER_PHASE

SECOND = 1_000_000_000
START = 1_000 * SECOND


class Timeline:
    """Begins and ends stretches at seconds of the test's own."""

    def __init__(self) -> None:
        self.stretches = Stretches()
        self.ids = iter(range(1_000_000))
        self.stretches.due(START)

    def begin(
        self,
        at_s: float,
        name: str = "eval",
        code: int = 1,
        source: Source = "user",
        step: int = 7,
    ) -> Stretch:
        stretch = Stretch(next(self.ids), name, code, source, START + round(at_s * SECOND), step)
        self.stretches.begin(stretch)
        return stretch

    def run(self, begin_s: float, end_s: float, **what: Any) -> Stretch:
        stretch = self.begin(begin_s, **what)
        stretch.end_ns = START + round(end_s * SECOND)
        stretch.end_step = stretch.step
        return stretch

    def due(self, at_s: float, *, closing: bool = False) -> list[dict[str, Any]]:
        now_ns = START + round(at_s * SECOND)
        return [data for _, data in self.stretches.due(now_ns, closing=closing)]


@pytest.fixture
def timeline() -> Timeline:
    return Timeline()


def test_a_short_stretch_is_told_once_when_it_is_over(timeline: Timeline) -> None:
    timeline.run(0, 0.4)
    assert timeline.due(0.5) == []
    (data,) = timeline.due(1)
    assert data == {
        "id": 0,
        "phase": "eval",
        "code": 1,
        "source": "user",
        "start_ns": START,
        "end_ns": START + 400_000_000,
        "end_step": 7,
        "count": 1,
        "skipped": 0,
        "peak_bytes": None,
        "volume_bytes": None,
    }
    assert timeline.stretches.is_idle


def test_a_long_one_is_told_while_it_lasts_and_again_at_its_end(timeline: Timeline) -> None:
    stretch = timeline.begin(0)
    assert timeline.due(0.9) == []
    (opened,) = timeline.due(1.1)
    assert (opened["id"], opened["end_ns"]) == (0, None)
    assert timeline.due(50) == []
    stretch.end_ns = START + 60 * SECOND
    (closed,) = timeline.due(60)
    assert (closed["id"], closed["end_ns"]) == (0, START + 60 * SECOND)
    assert timeline.due(70) == []


def test_the_first_of_a_users_name_is_told_at_once(timeline: Timeline) -> None:
    first = timeline.begin(0, name="warm-up", code=FIRST_USER_PHASE)
    (data,) = timeline.due(0.01)
    assert (data["phase"], data["code"], data["end_ns"]) == ("warm-up", FIRST_USER_PHASE, None)
    first.end_ns = START + SECOND // 10
    assert len(timeline.due(0.1)) == 1
    timeline.begin(0.5, name="warm-up", code=FIRST_USER_PHASE)
    assert timeline.due(0.6) == []


def test_what_follows_closely_is_one_stretch(timeline: Timeline) -> None:
    """A checkpoint is many saves, one after the other."""
    for number in range(5):
        timeline.run(number * 0.3, number * 0.3 + 0.2, name="checkpoint", code=2, source="save")
    (data,) = timeline.due(10)
    assert (data["start_ns"], data["end_ns"]) == (START, START + 1_400_000_000)
    assert data["count"] == 5


@pytest.mark.parametrize(
    ("peaks", "volumes", "peak", "volume"),
    [
        ((5, 9), (1, 2), 9, 3),
        ((9, 5), (0, 0), 9, 0),
        ((None, 9), (1, 2), None, 3),
        ((5, None), (None, 2), None, None),
    ],
)
def test_one_stretch_of_several_has_the_highest_peak_and_all_bytes(
    timeline: Timeline,
    peaks: tuple[int | None, int | None],
    volumes: tuple[int | None, int | None],
    peak: int | None,
    volume: int | None,
) -> None:
    for at_s, peak_bytes, volume_bytes in zip((0.0, 0.2), peaks, volumes, strict=True):
        stretch = timeline.run(at_s, at_s + 0.15)
        stretch.peak_bytes, stretch.volume_bytes = peak_bytes, volume_bytes
    (data,) = timeline.due(2)
    assert (data["count"], data["peak_bytes"], data["volume_bytes"]) == (2, peak, volume)


@pytest.mark.parametrize(
    ("name", "begin_s", "source", "step"),
    [
        ("checkpoint", 1.1, "user", 7),
        ("eval", 1.5, "user", 7),
        ("eval", 1.1, "loader", 7),
        ("eval", 1.1, "user", 8),
    ],
)
def test_what_differs_or_comes_later_is_another(
    timeline: Timeline, name: str, begin_s: float, source: Source, step: int
) -> None:
    timeline.run(0, 1)
    timeline.run(begin_s, begin_s + 1, name=name, source=source, step=step)
    assert [data["id"] for data in timeline.due(10)] == [0, 1]


def test_what_was_recognised_and_is_over_at_once_is_none(timeline: Timeline) -> None:
    timeline.run(0, 0.04, source="loader")
    timeline.run(1, 1.04, source="save")
    timeline.run(2, 2.04, source="callback")
    assert [data["id"] for data in timeline.due(10)] == [2]


def test_many_that_are_over_at_once_are_one_that_lasts(timeline: Timeline) -> None:
    """A checkpoint of many small files."""
    for number in range(20):
        timeline.run(number * 0.02, number * 0.02 + 0.01, source="save")
    (data,) = timeline.due(10)
    assert (data["end_ns"] - data["start_ns"], data["count"]) == (390_000_000, 20)


def test_too_many_are_skipped_and_counted(timeline: Timeline) -> None:
    for number in range(100):
        timeline.run(number * 0.02, number * 0.02 + 0.01, name=f"{number % 2}", code=1)
    told = timeline.due(2.6)
    assert 30 <= len(told) <= 33
    assert sum(data["skipped"] for data in told) == 100 - len(told)
    timeline.run(40, 41)
    assert timeline.due(50)[0]["skipped"] == 0


def test_those_that_never_arrived_count_as_skipped(timeline: Timeline) -> None:
    for _ in range(9):
        next(timeline.ids)
    timeline.run(0, 1)
    assert timeline.due(10)[0]["skipped"] == 9


def test_what_was_none_after_all_is_taken_back_if_it_was_told(timeline: Timeline) -> None:
    told, not_told = timeline.begin(0), timeline.begin(1.5)
    assert len(timeline.due(2)) == 1
    for stretch in (told, not_told):
        stretch.is_cancelled = True
        stretch.end_ns = START + 2 * SECOND
    (data,) = timeline.due(2.1)
    assert (data["id"], data["start_ns"], data["end_ns"]) == (0, START, START)
    assert timeline.due(10, closing=True) == []


def test_closing_ends_and_tells_everything(timeline: Timeline) -> None:
    timeline.begin(0)
    timeline.run(0.1, 0.2, name="checkpoint", code=2)
    told = timeline.due(0.3, closing=True)
    assert {data["phase"]: data["end_ns"] for data in told} == {
        "eval": START + 300_000_000,
        "checkpoint": START + 200_000_000,
    }


@pytest.mark.parametrize(
    ("length_s", "text"),
    [(0.34, "eval, 340 ms"), (12.44, "eval, 12.4 s"), (125, "eval, 2 min 5 s")],
)
def test_the_event_says_how_long(timeline: Timeline, length_s: float, text: str) -> None:
    assert timeline.run(0, length_s).text() == text
    assert timeline.begin(0).text() == "eval"
    merged = timeline.run(0, length_s)
    merged.count = 3
    assert merged.text() == f"{text} (3 times)"
