"""Questions about the moments of a stored snapshot, over REST."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.made_moments import LAST_STEPS, MIB
from tests.support.server_app import OWNER, ServerApp

RUN = "0123456789ab"


@pytest.fixture
def stored(server: ServerApp) -> Iterator[str]:
    """A recording of a run that lives."""
    with server.agent(run="train", run_id=RUN) as agent:
        agent.samples(1)
        agent.wait_acked()
        yield upload(server, run="train")


def upload(server: ServerApp, **params: Any) -> str:
    response = server.client.post(
        "/api/v1/snapshots", content=LAST_STEPS.read_bytes(), params=params, headers=OWNER
    )
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def test_a_timeline_and_a_window_of_it(server: ServerApp, stored: str) -> None:
    path = f"/api/v1/snapshots/{stored}/timeline"
    whole = server.get(path)
    assert (whole["entries"], whole["has_stacks"], whole["unit"]) == (8000, True, "us")
    assert len(whole["moments"]) <= 1400
    assert max(whole["total"]) == whole["peak_bytes"]
    labels = [group["label"] for group in whole["groups"]]
    assert "train.py:56 leak" in labels
    start, end = whole["steps"][-2]["x"], whole["steps"][-1]["x"]
    window = server.get(path, start=start, end=end, points=100, by="category")
    assert (window["start"], window["end_x"]) == (start, end)
    assert len(window["moments"]) <= 100
    assert {group["category"] for group in window["groups"]} >= {"activations", "unknown"}


def test_a_moment_with_its_tree(server: ServerApp, stored: str) -> None:
    path = f"/api/v1/snapshots/{stored}/moment"
    peak = server.get(path)
    assert peak["moment"] == peak["peak"]
    assert peak["tree"]["bytes"][0] == peak["live_bytes"] == peak["peak_bytes"]
    assert server.get(path, at="end")["moment"] == 7999
    assert server.get(path, at="-1")["time_us"] is None
    unfolded = server.get(path, at="100", fold=False)
    assert "_call_impl" in unfolded["tree"]["name"]


def test_the_line_that_leaks_grows_most(server: ServerApp, stored: str) -> None:
    ends = [
        step["moment"]
        for step in server.get(f"/api/v1/snapshots/{stored}/timeline")["steps"]
        if step["moment"] >= 0
    ]
    growth = server.get("/api/v1/snapshots/growth", a=stored, b=stored, a_at=ends[1], b_at=ends[-1])
    assert growth["rows"][0]["label"] == "train.py:56 leak"
    assert growth["after_bytes"] - growth["before_bytes"] > 10 * MIB
    assert growth["is_certain"]


def test_two_snapshots_are_compared_at_their_ends(server: ServerApp, stored: str) -> None:
    other = upload(server, run="train")
    growth = server.get("/api/v1/snapshots/growth", a=stored, b=other)
    assert not growth["is_certain"]
    assert growth["survived_bytes"] == growth["before_bytes"] == growth["after_bytes"]


WRONG = [
    ("timeline", {"by": "colour"}, 422, "by: expected"),
    ("timeline", {"points": 3}, 422, "points: expected greater than or equal to 4"),
    ("timeline", {"points": 4001}, 422, "points: expected less than or equal to 4000"),
    ("timeline", {"start": -1}, 422, "start: expected"),
    ("timeline", {"start": 1 << 63}, 422, "start: expected"),
    ("timeline", {"device": 9}, 404, "expected a device of the snapshot (0), got 9"),
    ("moment", {"at": "noon"}, 400, "at: expected the number of an entry, 'peak' or 'end'"),
    ("moment", {"at": "8000"}, 400, "at: expected an entry from -1 to 7999, got 8000"),
]


def test_what_was_expected_is_said(server: ServerApp, stored: str) -> None:
    for name, params, status, message in WRONG:
        error = server.get_error(f"/api/v1/snapshots/{stored}/{name}", status, **params)  # type: ignore[arg-type]
        assert message in error["message"]


def test_an_unknown_snapshot(server: ServerApp) -> None:
    for path, params in (
        ("none/timeline", {}),
        ("none/moment", {}),
        ("growth", {"a": "x", "b": "y"}),
    ):
        assert server.get_error(f"/api/v1/snapshots/{path}", 404, **params)["code"] == "not_found"


def test_a_frame_sees_what_is_of_its_run(server: ServerApp, stored: str) -> None:
    foreign = upload(server)
    token = server.post("/api/v1/runs/train/frames", {}).json()["token"]
    headers = {"authorization": f"Bearer {token}"}

    def status(path: str, **params: str) -> int:
        response = server.client.get(f"/api/v1/snapshots/{path}", params=params, headers=headers)
        return int(response.status_code)

    assert status(f"{stored}/timeline") == status(f"{stored}/moment") == 200
    assert status("growth", a=stored, b=stored) == 200
    assert status(f"{foreign}/moment") == 403
    assert status("growth", a=stored, b=foreign) == 403
    assert status("growth", a=stored) == 422


def test_who_may_not_look_is_refused(server: ServerApp, stored: str) -> None:
    ingest = {"authorization": f"Bearer {server.make_token('ingest')}"}
    response = server.client.get(f"/api/v1/snapshots/{stored}/moment", headers=ingest)
    assert response.status_code == 403
