"""A request finds a block of its stream, memory of the device, a flush, or nothing."""

from __future__ import annotations

import pytest

from tests.support.made_layouts import made_layout
from tests.support.made_ranks import MIB, made_rank
from vramscope_analysis.diagnosis.request_fit import Place, RequestFit, is_large, request_fit
from vramscope_analysis.evidence.memory_layout import MemoryLayout


def fit_of(
    layout: MemoryLayout, settings: str | None = "", stream: int | None = None
) -> RequestFit | None:
    rank = made_rank(1, columns={}, total_bytes=400 * MIB, settings=settings, layout=layout)
    return request_fit(rank, stream)


@pytest.mark.parametrize(
    ("asked", "at_best", "place"),
    [
        (30, False, "block"),
        (31, False, "device"),
        (40, False, "device"),
        (41, False, "flush"),
        (41, True, "block"),
        (60, False, "flush"),
        (61, False, "nowhere"),
        (70, True, "block"),
        (71, True, "nowhere"),
    ],
)
def test_where_a_request_is_served(asked: int, at_best: bool, place: Place) -> None:
    # 360 of 400 MiB are held, 20 could go back.
    layout = made_layout("s10 f30 a40 s240", "f20", "s20")
    fit = fit_of(layout)
    assert fit is not None
    assert (fit.room_bytes, fit.largest_bytes) == (40 * MIB, 40 * MIB)
    assert fit.place_of(asked * MIB, at_best=at_best) == place


def test_a_request_takes_a_whole_segment() -> None:
    fit = fit_of(made_layout("s381"))
    assert fit is not None
    assert fit.room_bytes == 19 * MIB
    # Below 10 MiB it takes 20, from there on what it needs in steps of 2 MiB.
    assert [fit.place_of(size * MIB) for size in (2, 9, 10, 18, 19)] == [
        "nowhere",
        "nowhere",
        "device",
        "device",
        "nowhere",
    ]
    assert fit.largest_bytes == 18 * MIB
    little = fit_of(made_layout("s391"))
    assert little is not None
    assert little.largest_bytes == 0


def test_an_expandable_segment_takes_what_it_lacks() -> None:
    fit = fit_of(made_layout("s350 f20", page_bytes=2 * MIB), "expandable_segments:True")
    assert fit is not None
    assert [fit.place_of(size * MIB) for size in (20, 50, 51)] == ["block", "device", "flush"]


def test_streams_serve_their_own() -> None:
    layout = made_layout(("large", 0, "s300"), ("large", 7, "f90"))
    own, other = fit_of(layout), fit_of(layout, stream=7)
    assert own is not None
    assert other is not None
    assert (own.largest_free_bytes, other.largest_free_bytes) == (0, 90 * MIB)
    assert (own.place_of(80 * MIB), other.place_of(80 * MIB)) == ("flush", "block")
    new = fit_of(layout, stream=9)
    assert new is not None
    assert (new.pool, new.free_bytes, new.place_of(10 * MIB)) == (None, 0, "device")


def test_the_less_counts_of_what_the_limit_and_the_device_leave() -> None:
    layout = made_layout("s100", limit_bytes=300 * MIB, device_free_bytes=50 * MIB)
    fit = fit_of(layout)
    assert fit is not None
    assert fit.room_bytes == 50 * MIB
    over = fit_of(made_layout("s100", limit_bytes=90 * MIB))
    assert over is not None
    assert over.room_bytes == 0


def test_what_is_not_known_is_not_judged() -> None:
    layout = made_layout("s100")
    assert fit_of(layout, None) is None
    assert fit_of(layout, "max_split_size_mb:64") is None
    assert fit_of(made_layout("s100", is_exact=False)) is None
    assert fit_of(made_layout()) is None
    unlimited = made_rank(1, columns={}, total_bytes=None, settings="", layout=layout)
    assert request_fit(unlimited) is None


def test_small_requests_have_a_pool_of_their_own() -> None:
    assert [is_large(size) for size in (MIB, MIB + 1)] == [False, True]
