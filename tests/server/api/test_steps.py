from __future__ import annotations

from tests.support.scripted_agent import RESERVED
from tests.support.server_app import ServerApp

PEAK = "reserved_bytes.all.peak"
PATH = "/api/v1/runs/train/steps"


def test_exact_rows(server: ServerApp) -> None:
    with server.agent() as agent:
        agent.steps(4, step=1, **{RESERVED: [5, 9, 7, 8], PEAK: [6, 7, 11, 9]})
        agent.wait_acked()
        whole = server.get(PATH)
        part = server.get(PATH, start=2, end=3, fields=RESERVED)
        few = server.get(PATH, points=1, fields=RESERVED)
    assert whole["step"] == [1, 2, 3, 4]
    assert whole["columns"][RESERVED] == [5, 9, 7, 8]
    assert (part["step"], part["columns"]) == ([2, 3], {RESERVED: [9, 7]})
    # Of each bin the step with the highest peak is kept, with all its own values.
    assert 7 in few["columns"][RESERVED]


def test_what_was_expected_is_said(server: ServerApp) -> None:
    with server.agent():
        error = server.get_error(PATH, 422, start="first")
    assert error["message"].startswith("start: expected a valid integer")
