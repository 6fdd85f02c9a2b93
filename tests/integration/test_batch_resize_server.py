"""Two watched ranks are resized through the server, at the same step, while they train."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, wait_until
from tests.support.server_process import ServerProcess
from tests.support.torchrun import torchrun

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("accelerate")

TOKEN = "resized-ranks"
SCRIPT = REPOSITORY / "tests/support/jobs/resized_ranks.py"
SAMPLES = 192


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path, token=TOKEN) as server:
        yield Api(server.url, TOKEN)


def test_both_ranks_switch_at_the_same_batch_and_lose_nothing(api: Api, tmp_path: Path) -> None:
    end = tmp_path / "end"
    with torchrun(api, "resized", 0, ["--emulate"], [str(SCRIPT), str(end)]) as job:

        def steps(at_least: int) -> None:
            wait_until(
                lambda: api.get("/api/v1/runs/resized")["ranks"],
                lambda ranks: all((rank["step"] or 0) >= at_least for rank in ranks),
                f"step {at_least}",
                timeout_s=120,
            )

        api.wait_for_run("resized", lambda run: len(run["ranks"]) == 2, "two ranks", timeout_s=120)
        steps(5)
        plan = api.command("resized", "set_batch_size", params={"batch_size": 4}, dry_run=True)
        down = api.command("resized", "set_batch_size", params={"batch_size": 4})
        steps(max(receipt["step"] for receipt in down["receipts"].values()) + 20)
        up = api.command("resized", "set_accumulation", params={"accumulation": 1})
        steps(max(receipt["step"] for receipt in up["receipts"].values()) + 20)
        end.touch()
        code, output, errors = finish(job)
    assert code == 0, errors
    for command in (plan, down, up):
        assert command["state"] == "done", command
        first, second = (command["receipts"][rank] for rank in ("0", "1"))
        assert first["before"]["global_batch"] == first["after"]["global_batch"] == 16, command
        if command is not plan:  # for which each rank looks when it comes by
            assert first["step"] == second["step"]
            assert first["message"].split(".")[:3] == second["message"].split(".")[:3]
    assert down["receipts"]["0"]["after"]["peak_bytes"] > 0
    epochs: dict[int, list[Any]] = {0: [], 1: []}
    for line in output.splitlines():
        if line.startswith("epoch "):
            rank, seen, sizes = json.loads(line.removeprefix("epoch "))
            epochs[rank].append((seen, sizes))
    assert len(epochs[0]) == len(epochs[1])
    for (mine, sizes), (theirs, other_sizes) in zip(epochs[0], epochs[1], strict=True):
        assert sizes == other_sizes
        assert sorted([*mine, *theirs]) == list(range(SAMPLES))
    assert {size for _, sizes in epochs[0] for size in sizes} == {4, 8}
    columns = api.get("/api/v1/runs/resized/steps?rank=0")["columns"]
    assert set(columns["step.batch_samples"]) == {8}
    assert set(columns["step.batch_size"]) == {4, 8}
