"""A job whose lasting tensors pin segments is told so, though nobody looks at its map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, wait_until
from tests.support.judged_job import JudgedJob, judged_job

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/pinned_segments.py"
MIB = 1 << 20


def pieces(job: JudgedJob) -> dict[str, Any]:
    """The finding about pieces with its evidence; empty if there is none."""
    told = job.finding("fragmentation")
    return {} if told is None else {**told["evidence"], **told}


def test_what_pins_segments_and_what_each_step_asks_for_are_told(tmp_path: Path) -> None:
    with judged_job(JOB, tmp_path) as job:
        job.wait_for_step(60)
        told = wait_until(
            lambda: pieces(job), lambda now: now.get("shape") == "static", "its kind", 120
        )
        assert told["summary"].endswith("at once: they lie beside blocks that stay.")
        (pin,) = told["pinned_by"]
        assert (pin["blocks"], pin["live_bytes"]) == (8, 176 * MIB)
        assert pin["pinned_bytes"] == 8 * 18 * MIB
        large = next(each for each in told["pools"] if each["pool"] == "large")
        assert (large["largest_bytes"], large["pinned_bytes"]) == (18 * MIB, 8 * 18 * MIB)
        assert "allocate what stays before the first step" in str(told["remedies"])
        job.record(3)
        told = wait_until(
            lambda: pieces(job), lambda now: "recorded_steps" in now, "the requests", 120
        )
        assert (told["recorded_steps"], told["every_step_request_bytes"]) == (3, 16 * MIB)
        assert told["every_step_request_at"] == "pinned_segments.py:29 main"
        assert told["steps_beyond"] == 0
        assert told["shape"] == "static"
        job.end()
