"""On a real GPU: what is written down when memory runs out, and that the job does not notice."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    plain_command,
    start,
    wait_until,
    watched_command,
)
from tests.support.server_process import ServerProcess
from tests.support.torchrun import torchrun

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(400)]

JOB = REPOSITORY / "tests/support/jobs/gpu_runs_out.py"
MIB = 1 << 20
LIMIT_BYTES = 2048 * MIB
"""The job caps itself, so that no card is too large for it."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    folder = tmp_path / "server"
    folder.mkdir()
    with ServerProcess(folder) as started:
        yield started


def run(server: ServerProcess, spool: Path, name: str, *arguments: str) -> tuple[int, str, str]:
    """The job under the agent, until it ends."""
    options = ("--spool-dir", str(spool))
    command = watched_command(
        JOB, *arguments, url=server.url, token=server.token, run=name, options=options
    )
    return finish(start(command))


def listed(server: ServerProcess, name: str) -> list[dict[str, Any]]:
    api = Api(server.url, server.token)
    return wait_until(
        lambda: api.get(f"/api/v1/runs/{name}/ooms")["ooms"], bool, "a report of the run"
    )


def report_of(server: ServerProcess, row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = Api(server.url, server.token).get(f"/api/v1/ooms/{row['id']}")
    return found


def on_disk(spool: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(spool.glob("ooms/oom-*.json"))]


# PyTorch's message names every process on the device.
@pytest.mark.alone
@pytest.mark.parametrize("place", ["forward", "backward", "optimizer"])
def test_it_is_told_where_it_happened_and_the_job_handles_it_as_without_us(
    server: ServerProcess, tmp_path: Path, place: str
) -> None:
    arguments = ("--place", place, "--end", "go on")
    expected = finish(start(plain_command(JOB, *arguments)))
    assert expected[0] == 0, expected
    code, output, errors = run(server, tmp_path / "spool", place, *arguments)
    assert (code, foreign_lines(errors)) == (0, [])
    # Type of the error, its text without numbers, and the memory that is left after it.
    assert output == expected[1]
    row = listed(server, place)[-1]
    found = report_of(server, row)
    report = found["report"]
    assert (report["complete"], report["source"], report["emulated"]) == (True, "observer", False)
    assert report["part"] == place
    assert row["recovered_step"] is not None
    assert report["allowed_bytes"] <= LIMIT_BYTES + 32 * MIB
    assert report["segment_bytes"] > 0
    assert report["counters"]["num_ooms"] == 1
    assert report["counters"]["allocated_bytes.all.current"] > LIMIT_BYTES // 4
    assert report["by_size"]
    assert report["largest"]
    assert report["by_category"]["category.parameters_bytes"] > 0
    assert report["samples"]["time_ns"]
    assert report["steps"]["time_ns"]
    assert report["took_ms"] < 1000
    assert found["finding"]["kind"] == "oom"
    names = [thread["name"] for thread in report["threads"]]
    assert "MainThread" in names
    assert report["thread"] == ("autograd" if place == "backward" else "MainThread")


def test_in_the_first_step_of_all_it_is_told_too(server: ServerProcess, tmp_path: Path) -> None:
    code, _, errors = run(server, tmp_path / "spool", "first", "--steps", "0", "--end", "raise")
    assert code == 1
    assert foreign_lines(errors)[-1].startswith("torch.OutOfMemoryError: CUDA out of memory")
    (row,) = listed(server, "first")
    assert row["step"] == 0
    wait_until(lambda: listed(server, "first")[0]["is_fatal"], bool, "the end")
    report = report_of(server, row)["report"]
    assert report["by_category"]["category.parameters_bytes"] > 0


@pytest.mark.parametrize("place", ["forward", "backward"])
def test_killed_right_after_it_leaves_a_whole_report(tmp_path: Path, place: str) -> None:
    spool = tmp_path / "spool"
    options = ("--spool-dir", str(spool))
    # Nobody answers there: what is written stays where it is.
    command = watched_command(
        JOB,
        *("--place", place, "--end", "kill"),
        url="http://127.0.0.1:9",
        token="t",
        run="killed",
        options=options,
    )
    code, _, _ = finish(start(command))
    assert code == -signal.SIGKILL
    (report,) = on_disk(spool)
    assert report["complete"]
    assert report["part"] == place
    assert report["free_blocks"] is not None
    assert report["largest"]


def test_of_a_search_for_a_batch_size_the_first_and_the_last_are_there(
    server: ServerProcess, tmp_path: Path
) -> None:
    times = 300
    code, output, errors = run(
        server, tmp_path / "spool", "search", "--times", str(times), "--end", "go on"
    )
    assert (code, foreign_lines(errors)) == (0, []), output
    rows = listed(server, "search")
    assert 4 <= len(rows) <= 12
    assert rows[-1]["detail"] == "full"
    found = Api(server.url, server.token).get("/api/v1/runs/search/events?limit=1000")["events"]
    told = sum(each["data"].get("times", 1) for each in found if each["kind"] == "oom")
    assert told == times


def test_a_recorded_history_says_by_which_lines_memory_lives(
    server: ServerProcess, tmp_path: Path
) -> None:
    code, _, errors = run(server, tmp_path / "spool", "recorded", "--record", "--end", "go on")
    assert (code, foreign_lines(errors)) == (0, [])
    report = report_of(server, listed(server, "recorded")[-1])["report"]
    lines = [row for row in report["by_stack"] if row["file"].endswith("gpu_runs_out.py")]
    assert lines
    assert sum(row["bytes"] for row in lines) > 100 * MIB


def test_no_agent_sets_cuda_up(tmp_path: Path) -> None:
    script = tmp_path / "idle.py"
    script.write_text(
        "import time, torch\nimport torch.cuda\ntime.sleep(2)\nprint(torch.cuda.is_initialized())\n"
    )
    command = watched_command(script, url="http://127.0.0.1:9", token="t", run="idle")
    code, output, _ = finish(start(command))
    assert (code, output) == (0, "False\n")


def test_with_two_gpus_the_other_rank_is_asked(server: ServerProcess, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    api = Api(server.url, server.token)
    options = ["--spool-dir", str(tmp_path / "spool")]
    script = [str(JOB), "--ddp", "--rank", "1", "--end", "go on", "--linger", "30"]
    with torchrun(api, "two", 5, options, script):
        found = wait_until(
            lambda: api.get("/api/v1/runs/two/ooms")["ooms"] if _is_there(api) else [],
            lambda found: len(found) >= 2,
            "the reports of both ranks",
            180,
        )
    by_rank = {row["rank"]: row for row in found}
    assert by_rank[1]["source"] == "observer"
    assert by_rank[0]["source"] == "asked"
    assert by_rank[0]["linked_to"] == by_rank[1]["id"]


def _is_there(api: Api) -> bool:
    return any(run["name"] == "two" for run in api.get("/api/v1/runs"))
