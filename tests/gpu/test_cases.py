"""Every case on a real GPU: the verdicts of emulation, and those that need one."""

from __future__ import annotations

import urllib.error
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.cases.case import FOLDER, Case, mistakes
from tests.cases.conftest import OFTEN
from tests.cases.table import CASES
from tests.support.case_run import run_case
from tests.support.fake_server import free_port
from tests.support.full_device import device_with
from tests.support.job_process import Api, finish, start, wait_until, watched_command
from tests.support.server_thread import TOKEN, server_thread

MIB = 1 << 20
FILLS_THE_DEVICE = ("C64",)

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def no_leaked_threads() -> None:
    """The server is one for all tests, and so are its threads. No agent runs in this process."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with server_thread(tmp_path_factory.mktemp("cases"), OFTEN) as server:
        yield Api(server.url, TOKEN)


def parameter(case: Case) -> object:
    # What is wrong under emulation may be right here.
    why = case.wrong or case.sometimes
    marks = [pytest.mark.xfail(strict=False, reason=why)] if why else []
    if is_small(case) or case.name in FILLS_THE_DEVICE:
        marks.append(pytest.mark.alone)
    return pytest.param(case, id=case.name, marks=marks)


def is_small(case: Case) -> bool:
    """Whether it is about a device of a certain size."""
    return case.capacity != Case("").capacity


@pytest.mark.parametrize("case", [parameter(case) for case in CASES if case.needs != "time"])
def test_its_verdict_is_right(case: Case, api: Api) -> None:
    small = device_with(MIB * int(case.capacity.removesuffix("MiB"))) if is_small(case) else None
    with small or nullcontext():
        found = run_case(api, case.path, *case.arguments, environment=case.environment)
    assert found.code == case.ends, found.errors
    wrong = mistakes(case, found.versions)
    assert not wrong, "\n".join([*dict.fromkeys(wrong), found.told()])


def findings_of(api: Api, run: str) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = api.get(f"/api/v1/runs/{run}/findings")["findings"]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return []
    return found


def test_c44_ranks_that_hold_memory_of_the_first_device_are_named(api: Api, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    run = f"C44-{uuid.uuid4().hex[:8]}"
    port = str(free_port())
    jobs = [
        start(
            watched_command(
                FOLDER / "C44.py", str(tmp_path / "state.pt"), url=api.url, token=api.token, run=run
            ),
            RANK=str(rank),
            WORLD_SIZE="2",
            LOCAL_RANK=str(rank),
            # By these all ranks of a job know each other, whoever has started them.
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
        )
        for rank in range(2)
    ]
    # While both run: when one has ended there is nothing left to be told.
    told = wait_until(
        lambda: findings_of(api, run),
        lambda told: any(each["kind"] == "other_process" for each in told),
        "what a rank holds on the device of the other",
        timeout_s=60,
    )
    for job in jobs:
        code, output, errors = finish(job)
        assert code == 0, output + errors
    found = api.wait_for_run(run, lambda run: run["state"] == "ended", "to end")
    pids = {str(rank["pid"]) for rank in found["ranks"]}
    others = [each for each in told if each["kind"] == "other_process"]
    named = {pid for pid in pids for each in others if pid in each["summary"]}
    assert named, (pids, others)
    assert not [each for each in told if each["kind"] == "leak" and each["stage"] == "confirmed"]
