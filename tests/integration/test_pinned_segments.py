"""A job whose lasting tensors pin segments is told so, though nobody looks at its map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, start, wait_until, watched_command
from tests.support.server_thread import TOKEN, server_thread
from vramscope_server.settings import Limits

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/pinned_segments.py"
MIB = 1 << 20


def pieces(api: Api) -> dict[str, Any]:
    """Evidence of the finding about pieces; empty if there is none."""
    found = api.get("/api/v1/runs/pinned/findings")["findings"]
    told = next((each for each in found if each["kind"] == "fragmentation"), None)
    return {} if told is None else {**told["evidence"], **told}


def test_what_pins_segments_and_what_each_step_asks_for_are_told(tmp_path: Path) -> None:
    with server_thread(tmp_path, Limits(judge_interval_s=0.5)) as server:
        api = Api(server.url, TOKEN)
        options = ["--emulate", "--capacity=1GiB"]
        job = start(
            watched_command(JOB, url=api.url, token=api.token, run="pinned", options=options)
        )
        try:
            api.wait_for_run("pinned", lambda run: (run["step"] or 0) > 60, "sixty steps")
            told = wait_until(
                lambda: pieces(api), lambda now: now.get("shape") == "static", "its kind", 120
            )
            assert told["summary"].endswith("at once: they lie beside blocks that stay.")
            (pin,) = told["pinned_by"]
            assert (pin["blocks"], pin["live_bytes"]) == (8, 176 * MIB)
            assert pin["pinned_bytes"] == 8 * 18 * MIB
            large = next(each for each in told["pools"] if each["pool"] == "large")
            assert (large["largest_bytes"], large["pinned_bytes"]) == (18 * MIB, 8 * 18 * MIB)
            assert "allocate what stays before the first step" in str(told["remedies"])
            receipt = api.command("pinned", "history_start", params={"steps": 3}, deadline_s=60)
            assert receipt["receipts"]["0"]["state"] == "done", receipt
            told = wait_until(
                lambda: pieces(api), lambda now: "recorded_steps" in now, "the requests", 120
            )
            assert (told["recorded_steps"], told["every_step_request_bytes"]) == (3, 16 * MIB)
            assert told["every_step_request_at"] == "pinned_segments.py:29 main"
            assert told["steps_beyond"] == 0
            assert told["shape"] == "static"
            job.terminate()
            code, output, errors = finish(job)
            assert code == 0, output + errors
        finally:
            job.kill()
            job.communicate()
