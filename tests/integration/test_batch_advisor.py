"""The advice on the batch size against real trainings on an emulated device.

`benchmarks/bench_batch_advisor.py --all` does the same for all ten models.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.batch_trial import Trial
from tests.support.job_process import Api
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

TOKEN = "batch-advisor"
CAPACITY_MIB = 320
PLAN = "6x6,12x30"
RECORD_AFTER = 8
STEPS = 30


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path, token=TOKEN) as server:
        yield Api(server.url, TOKEN)


@pytest.mark.parametrize("model", ["transformer", "attention"])
def test_the_advised_batch_runs_and_is_near_the_largest(api: Api, model: str) -> None:
    if model != "transformer" and not os.environ.get("VRAMSCOPE_TEST_VERDICTS"):
        pytest.skip("only where verdicts are counted")
    whole = ("--emulate", f"--capacity={CAPACITY_MIB}MiB")
    less = ("--emulate", f"--capacity={CAPACITY_MIB * 0.95}MiB")
    trial = Trial(model, whole)
    advice = trial.advised(api, PLAN, RECORD_AFTER)["advice"]
    size = advice["batch_size"]
    assert advice["low"] <= size <= advice["high"]
    assert trial.outcome(f"{size}x{STEPS}", *whole) == {"steps": STEPS, "failed_at": None}
    assert size >= 0.95 * trial.outcome(f"search:4:{size}", *less)["largest"]


def test_of_samples_of_any_length_the_longest_fits(api: Api) -> None:
    whole = ("--emulate", f"--capacity={CAPACITY_MIB}MiB")
    trial = Trial("lengths", whole)
    advice = trial.advised(api, PLAN)["advice"]
    size = advice["batch_size"]
    assert any("Samples are not alike" in line for line in advice["basis"])
    assert trial.outcome(f"{size}x{STEPS}", *whole)["failed_at"] is None
