"""Two ranks of the example under torchrun, no line of vramscope in it: one run with both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api, finish, foreign_lines
from tests.support.server_process import ServerProcess
from tests.support.torchrun import SCRIPT, torchrun

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

TOKEN = "two-ranks"
STEPS = 100


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path, token=TOKEN) as server:
        yield Api(server.url, TOKEN)


def test_the_example_trains_and_both_ranks_are_in_one_run_with_every_step(api: Api) -> None:
    with torchrun(api, "two", STEPS, ["--emulate"]) as job:
        code, output, errors = finish(job)
    # Nothing on stdout but what the script prints itself, once in a hundred steps.
    assert (code, foreign_lines(errors)) == (0, [])
    assert re.fullmatch(r"step 100  loss [\d.]+\n", output)
    run = api.wait_for_run("two", lambda run: run["state"] == "ended", "to end")
    assert run["world_size"] == 2
    assert [rank["rank"] for rank in run["ranks"]] == [0, 1]
    assert [rank["local_rank"] for rank in run["ranks"]] == [0, 1]
    assert [rank["steps_received"] for rank in run["ranks"]] == [STEPS, STEPS]
    assert [rank["samples_lost"] for rank in run["ranks"]] == [0, 0]
    assert len({rank["pid"] for rank in run["ranks"]}) == 2
    assert "vramscope" not in SCRIPT.read_text().partition('"""\n\n')[2]
