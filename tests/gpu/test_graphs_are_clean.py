"""A long job of CUDA graphs: its pools, captures and evaluations are nothing to warn of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.conftest import OFTEN
from tests.support.case_run import run_case
from tests.support.job_process import REPOSITORY, Api
from tests.support.server_thread import TOKEN, server_thread

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/gpu_graphs.py"
OF_OTHER_JOBS = "other_process"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with server_thread(tmp_path, OFTEN) as server:
        yield Api(server.url, TOKEN)


def test_nothing_is_told_at_warning_or_above(api: Api) -> None:
    found = run_case(api, JOB, "--steps", "1200")
    assert found.code == 0, found.errors
    assert found.run["ranks"][0]["steps_received"] >= 1200
    alarms = [
        each
        for each in found.versions
        if each["severity"] != "info" and each["kind"] != OF_OTHER_JOBS
    ]
    assert not alarms, found.told()
