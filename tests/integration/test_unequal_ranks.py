"""Four ranks under torchrun, on a real server: who uses more, who caches more, who flushes."""

from __future__ import annotations

import operator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, wait_until
from tests.support.server_thread import TOKEN, server_thread
from tests.support.torchrun import torchrun
from vramscope_server.settings import Limits

pytestmark = [pytest.mark.torch, pytest.mark.timeout(240)]
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/unequal_ranks.py"
RANKS = 4
MIB = 1 << 20
EMULATED = ("--emulate", "--capacity=2GiB")
JUDGED_STEPS = 60
"""The first twenty are left out, and 25 more are needed."""
JUDGE_INTERVAL_S = 0.5


def imbalances(api: Api) -> dict[str, dict[str, Any]]:
    found = api.get("/api/v1/runs/four/findings?state=open")["findings"]
    return {each["subject"]: each for each in found if each["kind"] == "rank_imbalance"}


def wait_for_judgement(api: Api) -> None:
    """Wait for one that began after what is there by now had come: the next may be under way."""
    for _ in range(2):
        seen = judged_ns(api)
        wait_until(lambda: judged_ns(api), partial(operator.lt, seen), "a judgement", 60)


def judged_ns(api: Api) -> int:
    return api.get("/api/v1/runs/four/findings")["judged_ns"] or 0


def are_judged(run: dict[str, Any]) -> bool:
    ranks = run["ranks"]
    return len(ranks) == RANKS and all((rank["step"] or 0) > JUDGED_STEPS for rank in ranks)


def test_ranks_that_do_the_same_are_not_told_apart_and_those_that_do_not_are(
    tmp_path: Path,
) -> None:
    part = tmp_path / "part"
    with server_thread(tmp_path, Limits(judge_interval_s=JUDGE_INTERVAL_S)) as server:
        api = Api(server.url, TOKEN)
        with torchrun(api, "four", 0, EMULATED, [str(JOB), str(part)], ranks=RANKS):
            api.wait_for_run("four", are_judged, "steps enough", 120)
            wait_for_judgement(api)
            assert imbalances(api) == {}
            part.touch()
            found = wait_until(
                lambda: imbalances(api), lambda found: len(found) == 3, "all to be told", 60
            )
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
