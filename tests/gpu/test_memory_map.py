"""On a real GPU: the map is what PyTorch tells the job, and it keeps to what it may cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    plain_command,
    start,
    watched_command,
)
from tests.support.map_watch import maps_at_step_ends, names_of, plain_map, written_by
from tests.support.server_process import ServerProcess
from vramscope.memory_map.pace import IDLE_FRACTION, WATCHED_FRACTION
from vramscope_protocol.map_columns import EXPANDABLE, PRIVATE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

JOB = REPOSITORY / "tests/support/jobs/mapped_training.py"
COST = REPOSITORY / "tests/support/jobs/gpu_map_cost.py"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def watched_maps(
    api: Api, tmp_path: Path, extra: str = "", settings: str = ""
) -> list[dict[str, Any]]:
    """Maps at several step ends, each compared with what the job was told at the same one."""
    written = tmp_path / "segments.json"
    arguments = (str(written), "cuda", extra)
    job = start(
        watched_command(JOB, *arguments, url=api.url, token=api.token, run="mapped"),
        PYTORCH_CUDA_ALLOC_CONF=settings,
    )
    try:
        api.wait_for_run("mapped", lambda run: (run["step"] or 0) > 5, "first steps", 120)
        receipt = api.command("mapped", "watch_map", params={"seconds": 60})["receipts"]["0"]
        assert receipt["state"] == "done", receipt
        maps = maps_at_step_ends(api, "mapped", 8)
        job.terminate()
        code, output, errors = finish(job)
    finally:
        job.kill()
    assert code == 0, output + errors
    own = written_by(written)
    for step, found in maps.items():
        assert plain_map(found) == sorted(own["segments"][str(step)]), step
    # Compiled and distributed models wrap names; this one does not.
    assert names_of(maps[max(maps)], 1) == set(own["parameters"])
    return list(maps.values())


def test_the_map_is_what_the_job_itself_is_told(api: Api, tmp_path: Path) -> None:
    maps = watched_maps(api, tmp_path)
    for found in maps:
        assert found["limit_bytes"] > sum(found["segments"]["size"])
        assert found["device_free_bytes"] > 0
    print(f"cost of a look in us: {[found['took_us'] for found in maps]}")


def test_expandable_segments_with_their_pages(api: Api, tmp_path: Path) -> None:
    found = watched_maps(api, tmp_path, settings="expandable_segments:True")[-1]
    flags, pages = found["segments"]["flags"], found["segments"]["page_bytes"]
    assert any(each & EXPANDABLE for each in flags)
    assert all(
        bool(each & EXPANDABLE) == (page > 0) for each, page in zip(flags, pages, strict=True)
    )


def test_two_streams_and_what_waits_for_one(api: Api, tmp_path: Path) -> None:
    maps = watched_maps(api, tmp_path, "streams")
    assert all(len(set(found["segments"]["stream"])) > 1 for found in maps[1:])


def test_the_private_pool_of_a_cuda_graph(api: Api, tmp_path: Path) -> None:
    found = watched_maps(api, tmp_path, "graph")[-1]
    segments = found["segments"]
    private = [i for i, flags in enumerate(segments["flags"]) if flags & PRIVATE]
    assert private
    for i in private:
        assert (segments["pool_owner"][i], segments["pool_number"][i]) != (0, 0)


def test_what_a_look_costs_with_many_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    code, output, errors = finish(start(plain_command(COST, "1000", "10000", "50000")), 240)
    assert code == 0, output + errors
    rows = [json.loads(line) for line in output.splitlines()]
    with capsys.disabled():
        print(f"\n{output}")
    for row in rows:
        assert row["blocks"] >= row["asked"]
        cost_s = (row["snapshot_ms"] + row["look_ms"]) / 1000
        # The pace is held by the dearest of the last looks; the median may not pass the budget.
        for interval_s, fraction in (
            (row["watched_interval_s"], WATCHED_FRACTION),
            (row["idle_interval_s"], IDLE_FRACTION),
        ):
            assert interval_s is None or cost_s / interval_s <= fraction * 1.5
