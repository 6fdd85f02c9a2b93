"""Four ranks under torchrun, on a real server: who uses more, who caches more, who flushes."""

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

JOB = REPOSITORY / "tests/support/jobs/unequal_ranks.py"
TOKEN = "unequal-ranks"
RANKS = 4
MIB = 1 << 20
EMULATED = ("--emulate", "--capacity=2GiB")
JUDGED_STEPS = 60
"""The first twenty are left out, and 25 more are needed."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path, token=TOKEN) as started:
        yield started


def imbalances(server: ServerProcess, run: str) -> dict[str, dict[str, Any]]:
    found = server.get(f"/api/v1/runs/{run}/findings?state=open")["findings"]
    return {each["subject"]: each for each in found if each["kind"] == "rank_imbalance"}


def wait_for_steps(server: ServerProcess, run: str) -> None:
    def are_over() -> bool:
        answer = server.request("GET", f"/api/v1/runs/{run}")
        ranks = answer.body["ranks"] if answer.status == 200 else []
        return len(ranks) == RANKS and all((rank["step"] or 0) > JUDGED_STEPS for rank in ranks)

    server.wait_until(are_over, 120)


def test_a_larger_share_a_larger_cache_and_a_cache_that_is_flushed_are_told_of_their_ranks(
    server: ServerProcess,
) -> None:
    api = Api(server.url, TOKEN)
    job = [str(JOB), "unequal"]
    with torchrun(api, "unequal", 0, EMULATED, job, ranks=RANKS):
        wait_for_steps(server, "unequal")
        server.wait_until(lambda: len(imbalances(server, "unequal")) == 3, 60)
        found = imbalances(server, "unequal")
    memory, cache, flushes = found["memory"], found["cache"], found["flushes"]
    assert memory["ranks"] == [2]
    assert memory["summary"].startswith("Rank 2 of 4 uses ")
    assert memory["evidence"]["cause"] == "activations"
    # Eleven times the batch more, and a MiB is kept of each row.
    assert memory["evidence"]["more_bytes"] == pytest.approx(11 * 32 * MIB, rel=0.05)
    assert [remedy["action"] for remedy in memory["remedies"]] == [
        "spread long samples evenly over the ranks"
    ]
    assert cache["ranks"] == [1]
    assert cache["summary"].startswith("Rank 1 of 4 holds ")
    # What it needed once, and no tensor has a place in now.
    assert cache["evidence"]["more_bytes"] == pytest.approx(512 * MIB, rel=0.05)
    (remedy,) = cache["remedies"]
    assert (remedy["command"], remedy["predicted_bytes"]) == (
        "empty_cache",
        cache["evidence"]["more_bytes"],
    )
    assert (flushes["ranks"], flushes["severity"]) == ([3], "warning")
    assert flushes["summary"].startswith("Rank 3 of 4 flushed its cache ")
    assert flushes["summary"].endswith("; the others wait for it.")
    assert flushes["evidence"]["others_flushes"] == 0


def test_ranks_that_do_the_same_are_not_told_apart(server: ServerProcess) -> None:
    api = Api(server.url, TOKEN)
    with torchrun(api, "alike", 0, EMULATED, [str(JOB), "alike"], ranks=RANKS):
        wait_for_steps(server, "alike")
        path = "/api/v1/runs/alike/findings"
        seen = server.get(path)["judged_ns"]
        # A judgement that began after those steps had come.
        second = server.wait_until(lambda: _later(server.get(path)["judged_ns"], seen), 60)
        server.wait_until(lambda: _later(server.get(path)["judged_ns"], second), 60)
        assert imbalances(server, "alike") == {}


def _later(judged_ns: int | None, than_ns: int | None) -> int | None:
    return judged_ns if judged_ns is not None and judged_ns > (than_ns or 0) else None
