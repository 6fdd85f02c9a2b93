"""A real job is probed and then set to the advised size, all of it by ordinary commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, start, wait_until, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.timeout(400)]

JOB = REPOSITORY / "tests/support/jobs/batch_loader.py"
TOKEN = "batch-probe"
RUN = "probed"
PATH = f"/api/v1/runs/{RUN}/batch"
STEPS = 12


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path, token=TOKEN) as server:
        command = watched_command(
            JOB,
            *("transformer", "8"),
            url=server.url,
            token=TOKEN,
            run=RUN,
            options=("--emulate", "--capacity=192MiB"),
        )
        job = start(command, OMP_NUM_THREADS="1")
        try:
            yield Api(server.url, TOKEN)
        finally:
            job.kill()
            job.communicate()


def wait_for(api: Api, wanted: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
    # Before its first step nobody knows the run.
    api.wait_for_run(RUN, lambda run: (run["step"] or 0) > 0, "to train", 120)
    found: dict[str, Any] = wait_until(lambda: api.get(PATH), wanted, what, 120)
    return found


def sizes(api: Api) -> list[int]:
    """Of the newest steps."""
    fields = "step.batch_size,num_ooms"
    rows = api.get(f"/api/v1/runs/{RUN}/steps?rank=0&fields={fields}")
    assert not rows["columns"]["num_ooms"][-1]
    return [int(size or 0) for size in rows["columns"]["step.batch_size"][-STEPS:]]


def test_probing_narrows_the_range_and_one_click_sets_the_size(api: Api) -> None:
    first = wait_for(api, lambda answer: answer["probe"] is not None, "a probe to be offered")
    assert (first["advice"]["current"], first["probe"]["batch_size"]) == (8, 16)

    api.post(f"{PATH}/probe", {"batch_size": 16})
    probed = wait_for(
        api,
        lambda answer: answer["probing"]["state"] in ("done", "failed") and answer["advice"],
        "the probe to end",
    )
    assert probed["probing"]["state"] == "done", probed["probing"]
    tried = [each["batch_size"] for each in probed["advice"]["ranks"][0]["tried"]]
    assert tried == [8, 16]
    width = [each["high"] - each["low"] for each in (first["advice"], probed["advice"])]
    assert width[1] < width[0]
    wait_until(lambda: sizes(api), lambda found: set(found) == {8}, "the size to be back", 60)

    recorded = api.command(RUN, "history_start", params={"steps": 2})
    assert recorded["state"] == "done", recorded
    advice = wait_for(
        api, lambda answer: answer["advice"]["is_replayed"], "the window to be replayed"
    )["advice"]
    applied = api.command(RUN, "set_batch_size", params=advice["params"])
    assert applied["state"] == "done", applied
    wanted = {advice["batch_size"]}
    wait_until(lambda: sizes(api), lambda found: set(found) == wanted, "the new size", 120)
