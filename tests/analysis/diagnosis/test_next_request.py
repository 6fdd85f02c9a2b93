"""A request that finds no place is told where all agrees, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.made_layouts import made_layout
from tests.support.made_ranks import MIB, made_rank
from vramscope_analysis.diagnosis.next_request import next_request
from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.evidence.recorded_requests import RecordedRequests, Request
from vramscope_analysis.evidence.recorded_window import RecordedWindow
from vramscope_analysis.evidence.run_evidence import RankEvidence

COUNT = 40
FLUSHED = [0] * 30 + [1] * 10
CARVED = ("s20 f100 s20 f100 s20", "s300 f16", "f44")
"""Of 620 MiB 260 are free, the largest piece 100, and 44 could go back."""


def request(size: int, stream: int = 0) -> Request:
    return Request(size * MIB, stream, "train.py:56 forward")


def window_of(size: int, stream: int = 0) -> RecordedWindow:
    asked = request(size, stream)
    requests = RecordedRequests(90, 3, asked, asked, (asked.bytes,) * 3)
    return RecordedWindow(MemoryLayout(()), requests)


def at_the_edge(
    *segments: Any,
    flushes: list[int] = FLUSHED,
    active: list[int] | None = None,
    step: int = COUNT,
    size: int = 198,
    stream: int = 0,
    **more: Any,
) -> RankEvidence:
    """The process may hold 670 MiB; each recorded step asked for ``size`` MiB in one piece."""
    layout = made_layout(*(segments or CARVED), step=step, is_step_end=True, limit_bytes=670 * MIB)
    columns = {
        "num_alloc_retries": [sum(flushes[: at + 1]) for at in range(COUNT)],
        "active_bytes.all.current": [400 * MIB] * COUNT if active is None else active,
    }
    told: dict[str, Any] = {"settings": "", "window": window_of(size, stream), "layout": layout}
    return made_rank(COUNT, columns=columns, **{**told, **more})


def test_a_request_that_fits_nowhere_in_one_piece_is_told() -> None:
    ahead = next_request(at_the_edge())
    assert ahead is not None
    assert (ahead.request.bytes, ahead.largest_bytes) == (198 * MIB, 100 * MIB)
    assert (ahead.free_bytes, ahead.place) == (310 * MIB, "nowhere")


def test_with_enough_to_give_back_it_takes_a_flush() -> None:
    ahead = next_request(at_the_edge("s20 f100 s20 f100 s170", "f190", size=194))
    assert ahead is not None
    assert ahead.place == "flush"


@pytest.mark.parametrize(
    ("why", "rank"),
    [
        ("a block is large enough", at_the_edge("s20 f200 s300", "f80 s20")),
        ("the device has it", at_the_edge("s20 f100 s20 f100 s20", "s100 f16")),
        ("what is freed first makes room", at_the_edge("s20 f100 a20 f100 s20", "s300 f16 s44")),
        ("there is too little in all", at_the_edge("s20 f100 s440", "s96 f4")),
        ("of another stream", at_the_edge(("large", 7, "f260"), ("large", 0, "s400"), stream=7)),
        ("small requests", replace(at_the_edge(), window=window_of(1))),
        ("no window", at_the_edge(window=None)),
        (
            "no request comes in each step",
            at_the_edge(
                window=RecordedWindow(MemoryLayout(()), RecordedRequests(9, 0, request(198)))
            ),
        ),
        ("no map", at_the_edge(layout=None)),
        (
            "a map within a step",
            replace(
                at_the_edge(),
                layout=replace(made_layout(*CARVED), step=COUNT, limit_bytes=670 * MIB),
            ),
        ),
        ("settings are not known", at_the_edge(settings=None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_something_speaks_against_it_nothing_is_told(why: str, rank: RankEvidence) -> None:
    assert next_request(rank) is None, why


def test_steps_that_found_a_place_refute_it() -> None:
    # All is as in the look, and the last steps found what they asked for.
    assert next_request(at_the_edge(flushes=[0] * COUNT)) is None
    # The flush is over: the two steps after it found a place.
    assert next_request(at_the_edge(flushes=[0] * (COUNT - 3) + [1, 0, 0])) is None
    # A step after the look went without a flush.
    assert next_request(at_the_edge(step=COUNT - 2, flushes=[1] * (COUNT - 1) + [0])) is None
    # The look is of a time long ago.
    assert next_request(at_the_edge(step=5, flushes=[1] * COUNT)) is None
    assert next_request(at_the_edge(step=COUNT - 2, flushes=[1] * COUNT)) is not None


def test_what_came_with_the_last_step_makes_experience_worth_nothing() -> None:
    grown = [400 * MIB] * (COUNT - 1) + [404 * MIB]
    assert next_request(at_the_edge(flushes=[0] * COUNT, active=grown)) is not None
    # As much was in use before: then it did find a place.
    before = [404 * MIB, 400 * MIB] * (COUNT // 2 - 1) + [400 * MIB, 404 * MIB]
    assert next_request(at_the_edge(flushes=[0] * COUNT, active=before)) is None
    unknown = made_rank(COUNT, columns={}, settings="", window=window_of(198))
    layout = at_the_edge().layout
    assert next_request(replace(unknown, layout=layout)) is None
