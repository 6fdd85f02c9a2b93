"""A job in pieces is told so; a setting is advised once a recorded window has proved it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, start, wait_until, watched_command
from tests.support.server_thread import TOKEN, server_thread
from vramscope_server.settings import Limits

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/in_pieces.py"
EXPANDABLE = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def in_pieces(api: Api) -> dict[str, Any] | None:
    """The finding about pieces, if it is there."""
    found = api.get("/api/v1/runs/pieces/findings")["findings"]
    return next((each for each in found if each["kind"] == "fragmentation"), None)


def fixes(finding: dict[str, Any] | None) -> list[str]:
    return [] if finding is None else [remedy["fix"] for remedy in finding["remedies"]]


def test_facts_first_and_a_setting_when_it_is_proven(tmp_path: Path) -> None:
    with server_thread(tmp_path, Limits(judge_interval_s=0.5)) as server:
        api = Api(server.url, TOKEN)
        options = ["--emulate", "--capacity=1GiB"]
        job = start(
            watched_command(JOB, url=api.url, token=api.token, run="pieces", options=options)
        )
        try:
            api.wait_for_run("pieces", lambda run: (run["step"] or 0) > 5, "first steps")
            told = wait_until(lambda: in_pieces(api), bool, "pieces to be told", 120)
            assert told is not None
            assert EXPANDABLE not in fixes(told)
            assert [remedy["command"] for remedy in told["remedies"]] == ["history_start"]
            receipt = api.command("pieces", "history_start", params={"steps": 100}, deadline_s=60)
            assert receipt["receipts"]["0"]["state"] == "done", receipt
            proven = wait_until(
                lambda: in_pieces(api), lambda now: EXPANDABLE in fixes(now), "the proof", 120
            )
            assert proven is not None
            assert proven["id"] == told["id"]
            remedy = next(each for each in proven["remedies"] if each["fix"] == EXPANDABLE)
            assert remedy["predicted_bytes"] > 64 << 20
            assert "reserved at the peak of the recorded steps" in remedy["why"]
            # What the window asked for, and where the pieces lie, comes with it.
            evidence = proven["evidence"]
            assert evidence["shape"] == "size-mix", proven["detail"]
            assert (evidence["recorded_steps"], evidence["pools"][0]["stream"]) == (100, 0)
            # The job asks for pieces of 4 to 39 MiB.
            assert 4 << 20 <= evidence["every_step_request_bytes"] <= 39 << 20
            assert evidence["every_step_request_at"].startswith("in_pieces.py:25 main")
            assert evidence["largest_satisfiable_bytes"] > 0
            job.terminate()
            code, output, errors = finish(job)
            assert code == 0, output + errors
        finally:
            job.kill()
            job.communicate()
