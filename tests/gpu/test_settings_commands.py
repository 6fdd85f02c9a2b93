"""On a real GPU: settings are changed while a job runs, and PyTorch reports what was set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/gpu_commanded.py"
RUN = "set"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def test_settings_cap_and_libraries(api: Api) -> None:
    def run(name: str, **body: Any) -> dict[str, Any]:
        found: dict[str, Any] = api.command(RUN, name, **body)["receipts"]["0"]
        return found

    command = watched_command(JOB, "cached", url=api.url, token=api.token, run=RUN)
    job = start(command, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64")
    try:
        api.wait_for_run(RUN, lambda run: (run["step"] or 0) > 20, "20 steps")
        settings = run("set_allocator_settings", params={"settings": "expandable_segments:True"})
        wrong = run("set_allocator_settings", params={"settings": "max_split_size_mb:1"})
        fraction = run("set_memory_fraction", params={"fraction": 0.5})
        plans = run("clear_plan_caches")
        workspaces = run("clear_cublas_workspaces")
        dry = run("empty_cache", dry_run=True)
        real = run("empty_cache")
        before = api.wait_for_run(RUN, bool, "the run")["step"]
        api.wait_for_run(RUN, lambda run: run["step"] > before + 20, "training that goes on")
        job.terminate()
        code, output, errors = finish(job)
    finally:
        job.kill()
    assert code == 0, output + errors
    assert settings["state"] == "done", settings
    assert "though" not in settings["message"]
    assert settings["before"]["max_split_size_mb"] == settings["after"]["max_split_size_mb"] == "64"
    assert settings["before"]["expandable_segments"] == "default"
    assert settings["after"]["expandable_segments"] == "True"
    assert wrong["state"] == "refused"
    assert fraction["after"]["memory_fraction"] == pytest.approx(0.5)
    assert plans["state"] == "done"
    assert workspaces["state"] == "done"
    assert workspaces["result"]["freed_bytes"] >= 0
    assert dry["returned_bytes"] == real["returned_bytes"]
    shares = sum(each["bytes"] for each in dry["result"]["held_by"])
    assert shares == dry["result"]["stranded_bytes"]
