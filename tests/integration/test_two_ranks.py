"""Two ranks under torchrun, no line of vramscope in the script: one run, and commands on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api, finish, foreign_lines
from tests.support.server_process import ServerProcess
from tests.support.torchrun import torchrun

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

TOKEN = "two-ranks"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path, token=TOKEN) as server:
        yield Api(server.url, TOKEN)


def test_both_ranks_are_in_one_run_with_every_step(api: Api) -> None:
    with torchrun(api, "two", 20, ["--emulate"]) as job:
        code, output, errors = finish(job)
    # No step of the script prints below 100, so nothing on stdout: what is there would be ours.
    assert (code, output, foreign_lines(errors)) == (0, "", [])
    run = api.wait_for_run("two", lambda run: run["state"] == "ended", "to end")
    assert run["world_size"] == 2
    assert [rank["rank"] for rank in run["ranks"]] == [0, 1]
    assert [rank["local_rank"] for rank in run["ranks"]] == [0, 1]
    assert [rank["steps_received"] for rank in run["ranks"]] == [20, 20]
    assert [rank["samples_lost"] for rank in run["ranks"]] == [0, 0]
    assert len({rank["pid"] for rank in run["ranks"]}) == 2


def test_a_command_runs_on_both_ranks_and_leaves_a_receipt_of_each(api: Api) -> None:
    with torchrun(api, "two", 100_000, ["--emulate"]):
        api.wait_for_run(
            "two",
            lambda run: [(rank["step"] or 0) > 0 for rank in run["ranks"]] == [True, True],
            "a step on both ranks",
            timeout_s=60,
        )
        command = api.command("two", "empty_cache")
    assert command["state"] == "done"
    assert sorted(command["receipts"]) == ["0", "1"]
    for receipt in command["receipts"].values():
        assert receipt["state"] == "done"
        before, after = (receipt[key]["reserved_bytes"] for key in ("before", "after"))
        assert receipt["returned_bytes"] == before - after >= 0
