from __future__ import annotations

from typing import Any

from tests.support.scripted_agent import ALLOCATED
from tests.support.server_app import ServerApp
from vramscope_protocol.columns import UNKNOWN

PATH = "/api/v1/runs/train/series"
WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({}, 422, "fields: expected a value, got none"),
    ({"fields": " , "}, 400, "fields: expected 1 to 64 names, got 0"),
    ({"fields": ",".join(map(str, range(65)))}, 400, "got 65"),
    ({"fields": "a", "points": 0}, 422, "points: expected greater than or equal to 1, got '0'"),
    ({"fields": "a", "points": "many"}, 422, "points: expected a valid integer"),
    ({"fields": "a", "rank": -1}, 422, "rank: expected"),
    ({"fields": "a", "start_ns": "now"}, 422, "start_ns: expected"),
]


def test_raw_samples_with_what_is_unknown_as_null(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.samples(3, step=7, **{"time_ns": [10, 20, 30], ALLOCATED: [1, UNKNOWN, 3]})
        agent.wait_acked()
        body = server.get(PATH, fields=f"{ALLOCATED}, step", rank=0)
    assert (body["rank"], body["resolution_ms"], body["time_ns"]) == (0, 0, [10, 20, 30])
    assert body["columns"][ALLOCATED]["max"] == [1, None, 3]
    assert body["columns"]["step"]["min"] == [7, 7, 7]


def test_a_range_of_time(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.samples(3, time_ns=[10, 20, 30])
        agent.wait_acked()
        assert server.get(PATH, fields=ALLOCATED, start_ns=15, end_ns=25)["time_ns"] == [20]


def test_what_was_expected_is_said(server: ServerApp) -> None:
    with server.agent():
        for params, status, message in WRONG:
            error = server.get_error(PATH, status, **params)
            assert error["code"] == "bad_request"
            assert message in error["message"]


def test_an_unknown_run(server: ServerApp) -> None:
    assert server.get_error(PATH, 404, fields="a")["code"] == "not_found"


def test_every_series_is_defined(server: ServerApp) -> None:
    series = server.get("/api/v1/series-names")["series"]
    (allocated,) = [entry for entry in series if entry["name"] == ALLOCATED]
    assert allocated["unit"] == "B"
    assert all(entry["definition"].endswith(".") for entry in series)
