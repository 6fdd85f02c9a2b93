"""Two ranks that are nearly full by their optimizers: what is advised, through the real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api
from tests.support.server_process import ServerProcess
from tests.support.torchrun import torchrun

pytestmark = [pytest.mark.torch, pytest.mark.timeout(240)]
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/nearly_full.py"
TOKEN = "nearly-full"
MIB = 1 << 20
# 32 MiB each of parameters, gradients and buckets, 64 of state; as much again within Adam's step.
EMULATED = ("--emulate", "--capacity=230MiB", "--parts-budget=1")
SHARD = "shard the optimizer's state over the 2 ranks"
EIGHT_BITS = "use an 8-bit optimizer"
FUSED = "step the optimizer fused, or parameter by parameter"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, token=TOKEN) as started:
        yield started


def advice(server: ServerProcess) -> dict[str, dict[str, Any]]:
    answer = server.request("GET", "/api/v1/runs/full/findings?state=open")
    found = answer.body["findings"] if answer.status == 200 else []
    tight = [each for each in found if each["subject"] == "head-room"]
    return {remedy["action"]: remedy for each in tight for remedy in each["remedies"]}


def test_what_each_rank_has_whole_may_be_shared_and_what_is_short_lived_saved(
    server: ServerProcess,
) -> None:
    with torchrun(Api(server.url, TOKEN), "full", 0, EMULATED, [str(JOB)], ranks=2):
        # Which part of a step is the highest is known of split steps only.
        server.wait_until(lambda: {SHARD, EIGHT_BITS, FUSED} <= advice(server).keys(), 150)
        found = advice(server)
    assert found[SHARD]["predicted_bytes"] == pytest.approx(32 * MIB, rel=0.02)
    assert found[EIGHT_BITS]["predicted_bytes"] == pytest.approx(32 * MIB, rel=0.02)
    assert 16 * MIB <= found[FUSED]["predicted_bytes"] <= 64 * MIB
    assert all(found[action]["cost"] for action in (SHARD, EIGHT_BITS, FUSED))
    # In which type it computes has not been seen: no half precision.
    assert not any("bfloat16" in action for action in found)
