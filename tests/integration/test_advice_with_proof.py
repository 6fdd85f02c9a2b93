"""A job in pieces is told so; a setting is advised once a recorded window has proved it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, wait_until
from tests.support.judged_job import judged_job

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/in_pieces.py"
EXPANDABLE = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def fixes(finding: dict[str, Any] | None) -> list[str]:
    return [] if finding is None else [remedy["fix"] for remedy in finding["remedies"]]


def test_facts_first_and_a_setting_when_it_is_proven(tmp_path: Path) -> None:
    with judged_job(JOB, tmp_path) as job:
        job.wait_for_step(5)
        told = wait_until(lambda: job.finding("fragmentation"), bool, "pieces to be told", 120)
        assert told is not None
        assert EXPANDABLE not in fixes(told)
        assert [remedy["command"] for remedy in told["remedies"]] == ["history_start"]
        job.record(100)
        proven = wait_until(
            lambda: job.finding("fragmentation"),
            lambda now: EXPANDABLE in fixes(now),
            "the proof",
            120,
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
        job.end()
