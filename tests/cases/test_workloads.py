"""Jobs that are well: nothing is found in them, at no time; recorded ones and some that run."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.cases.case import is_sure
from tests.cases.table import runs_now
from tests.cases.workloads.catalogue import WORKLOADS
from tests.cases.workloads.record import command, environment
from tests.support.case_run import watch_job
from tests.support.job_process import Api
from tests.support.recorded_workload import FOLDER, RecordedWorkload
from vramscope_analysis.diagnosis.diagnose import diagnose

RECORDED = sorted(FOLDER.glob("*.npz"))
NEVER = ("leak", "cycle_growth", "retained_exception", "fragmentation", "near_oom", "oom")


def test_there_are_thirty_of_a_thousand_steps_each() -> None:
    assert {path.stem for path in RECORDED} <= set(WORKLOADS)
    assert len(RECORDED) >= 30


@pytest.mark.parametrize("path", RECORDED, ids=[path.stem for path in RECORDED])
def test_nothing_is_found_at_any_time(path: Path) -> None:
    workload = RecordedWorkload.read(path)
    steps = len(workload.steps)
    assert steps >= 990
    told = {
        f"{found.kind} {found.severity} {found.stage} at row {row}: {found.summary}"
        for row in [*range(10, steps, 10), steps]
        for found in diagnose(workload.run(row))
        if found.severity != "info" or (found.kind in NEVER and found.stage == "confirmed")
    }
    assert told == set()


@pytest.mark.torch
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["replay_buffer", "warm_cache", "lightning_fit", "any_length"])
def test_nothing_is_found_while_it_runs(name: str, api: Api) -> None:
    if not runs_now(name):
        pytest.skip("only where verdicts are counted")
    run = f"{name}-{uuid.uuid4().hex[:8]}"
    found = watch_job(api, run, command(name, api.url, api.token, run), **environment())
    assert found.code == 0, found.errors
    wrong = [
        told
        for told in found.versions
        if told["severity"] != "info" or (told["kind"] in NEVER and is_sure(told))
    ]
    assert not wrong, found.told()
