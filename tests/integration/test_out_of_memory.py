"""One of two ranks runs out of memory: the other one says what fills its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.job_process import REPOSITORY, Api, wait_until
from tests.support.server_process import ServerProcess
from tests.support.torchrun import torchrun

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/runs_out.py"


def test_the_other_rank_is_asked_and_goes_on(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        api = Api(server.url, server.token)
        go = tmp_path / "go"
        script = [str(JOB), "--wait-for", str(go), "--rank", "1", "--end", "go on"]
        options = ["--emulate", "--capacity", "64MiB", "--spool-dir", str(tmp_path / "spool")]
        with torchrun(api, "two", 5, options, script):
            api.wait_for_run(
                "two",
                lambda run: [(rank["step"] or 0) > 0 for rank in run["ranks"]] == [True, True],
                "a step on both ranks",
                timeout_s=60,
            )
            go.touch()
            found = wait_until(
                lambda: api.get("/api/v1/runs/two/ooms")["ooms"],
                lambda found: len(found) == 2,
                "the reports of both",
                60,
            )
        by_rank = {row["rank"]: row for row in found}
        assert by_rank[1]["source"] == "observer"
        assert by_rank[0]["source"] == "asked"
        assert by_rank[0]["linked_to"] == by_rank[1]["id"]
        linked = api.get(f"/api/v1/ooms/{by_rank[0]['id']}")
        assert linked["finding"] is None
        assert linked["report"]["counters"]["num_ooms"] == 0
        assert [each["rank"] for each in linked["siblings"]] == [1]
