"""Numbers that no database can hold are refused before one is asked."""

from __future__ import annotations

import pytest

from tests.support.server_app import ServerApp

HUGE = 10**21


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("steps", "rank"),
        ("steps", "start"),
        ("steps", "end"),
        ("series", "rank"),
        ("series", "start_ns"),
        ("series", "end_ns"),
        ("events", "rank"),
        ("events", "start_ns"),
        ("events", "end_ns"),
    ],
)
def test_a_number_beyond_all_bounds_is_refused(server: ServerApp, what: str, name: str) -> None:
    with server.agent():
        query = {"fields": "step", name: HUGE} if what == "series" else {name: HUGE}
        error = server.get_error(f"/api/v1/runs/train/{what}", 422, **query)
    assert error["message"].startswith(f"{name}: ")


@pytest.mark.parametrize("what", ["steps", "series", "events"])
def test_the_largest_that_it_can_hold_is_asked_for(server: ServerApp, what: str) -> None:
    largest = 2**63 - 1
    ends = {"start": -largest, "end": largest} if what == "steps" else {"end_ns": largest}
    with server.agent():
        server.get(f"/api/v1/runs/train/{what}", rank=largest, fields="step", **ends)
