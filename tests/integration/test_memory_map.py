"""The map that a server shows is what PyTorch told the job itself at the same step end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    start,
    wait_until,
    watched_command,
)
from tests.support.map_watch import map_of, maps_at_step_ends, names_of, plain_map, written_by
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

JOB = REPOSITORY / "tests/support/jobs/mapped_training.py"
TOKEN = "mapped"
SLOW_S = 180.0
"""Loading torch on a busy machine takes its time."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with ServerProcess(tmp_path_factory.mktemp("server"), token=TOKEN) as server:
        yield Api(server.url, TOKEN)


def started(api: Api, run: str, written: Path, **environment: str) -> subprocess.Popen[str]:
    """The job on an emulated device of 1 GiB."""
    options = ("--emulate", "--capacity=1g")
    arguments = (str(written), "cpu")
    command = watched_command(JOB, *arguments, url=api.url, token=TOKEN, run=run, options=options)
    return start(command, **environment)


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_frames_are_the_jobs_own_segments(api: Api, tmp_path: Path, settings: str) -> None:
    run = "expandable" if settings else "default"
    written = tmp_path / "segments.json"
    job = started(api, run, written, PYTORCH_CUDA_ALLOC_CONF=settings)
    try:
        api.wait_for_run(run, lambda found: (found["step"] or 0) > 2, "steps to come", SLOW_S)
        receipt = api.command(run, "watch_map", params={"seconds": 60})["receipts"]["0"]
        maps = maps_at_step_ends(api, run, 5)
        job.terminate()
        code, _, errors = finish(job, SLOW_S)
    finally:
        job.kill()
    assert (code, foreign_lines(errors)) == (0, [])
    assert receipt["message"] == "The map is sent for 60 s."
    own = written_by(written)
    for step, found in maps.items():
        assert plain_map(found) == sorted(own["segments"][str(step)])
        assert found["why_not"] == ""
        assert 0 <= found["rate_hz"] <= 2.0
    last = maps[max(maps)]
    # Whose memory it is, by the names that the job itself has.
    assert names_of(last, 1) == set(own["parameters"])
    assert any(name.startswith("exp_avg of ") for name in names_of(last, 3))
    kinds = set(last["segments"]["flags"])
    assert bool(settings) == any(flags & 2 for flags in kinds)
    # Some came while it was looked at, and their age is told in steps.
    assert 0 < max(last["blocks"]["first_step"]) <= max(maps)


def test_the_samples_tell_what_is_returnable_without_anybody_watching(
    api: Api, tmp_path: Path
) -> None:
    job = started(api, "samples", tmp_path / "segments.json")
    fields = "cache.returnable_bytes,cache.stranded_bytes,cache.largest_free_bytes"
    path = f"/api/v1/runs/samples/series?fields={fields}&points=1000"
    api.wait_for_run("samples", lambda found: (found["step"] or 0) > 2, "steps to come", SLOW_S)

    def highest() -> list[int]:
        columns = api.get(path)["columns"]
        return [
            max((v for v in each["max"] if v is not None), default=0) for each in columns.values()
        ]

    try:
        found = wait_until(highest, lambda values: any(values), "a look at the segments", SLOW_S)
        assert len(found) == 3
        assert map_of(api, "samples") is None, "frames are for who looks"
    finally:
        job.kill()
        job.communicate()
