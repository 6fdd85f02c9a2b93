"""Attach to CUDA jobs that nobody prepared: they survive it again and again, bit for bit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, start, wait_until
from tests.support.server_process import ServerProcess
from vramscope.attaching import attach
from vramscope.attaching.attach import attach_process, detach_process
from vramscope.attaching.importable import Importable, ask_importable
from vramscope.processes.process import Process

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

JOB = REPOSITORY / "tests/support/jobs/gpu_endless.py"
ROUNDS = int(os.environ.get("VRAMSCOPE_ATTACH_ROUNDS", "25"))
"""Rounds of attach and detach; 1,000 were run by hand (docs/gpu-results.md)."""


@pytest.fixture(autouse=True)
def needs_cuda() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def losses(folder: Path, rank: int = 0) -> list[str]:
    path = folder / f"losses-{rank}"
    return path.read_text().splitlines() if path.exists() else []


@contextmanager
def job(folder: Path, ranks: int = 1) -> Iterator[list[int]]:
    """The job, trained for a few steps; its processes by rank. It ends well or the test fails."""
    folder.mkdir()
    launcher: Sequence[str] = ()
    if ranks > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        launcher = torchrun
    process = start(
        [sys.executable, *launcher, str(JOB), str(folder)],
        # What deterministic cuBLAS asks for; buffered output would tell of a step too late.
        CUBLAS_WORKSPACE_CONFIG=":4096:8",
        OMP_NUM_THREADS="1",
        PYTHONFAULTHANDLER="1",
    )
    try:
        for rank in range(ranks):
            wait_until(
                lambda rank=rank: len(losses(folder, rank)),  # type: ignore[misc]  # bound at once
                lambda steps: steps > 20,
                f"20 steps of rank {rank}",
                timeout_s=120,
            )
        yield [int((folder / f"pid-{rank}").read_text()) for rank in range(ranks)]
    finally:
        (folder / "stop").touch()
        code, output, errors = finish(process)
        # Within: what the job wrote tells more than whatever the test has met because of it.
        assert code == 0, output + errors


def twin_losses(folder: Path, steps: int, ranks: int = 1) -> list[list[str]]:
    """What the same job that nobody touches computes, at least as far."""
    with job(folder, ranks):
        wait_until(
            lambda: len(losses(folder)), lambda done: done >= steps, f"{steps} steps", timeout_s=600
        )
    return [losses(folder, rank) for rank in range(ranks)]


@pytest.fixture
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the interpreter of all these jobs once: starting Python again is most of a round."""
    answers: list[Importable] = []

    def ask(process: Process) -> Importable:
        if not answers:
            answers.append(ask_importable(process))
        return answers[0]

    monkeypatch.setattr(attach, "ask_importable", ask)


def storm(api: Api, pid: int, rounds: int) -> list[float]:
    """Attach and detach; how long each attach stopped the process, in us."""
    options = {"url": api.url, "token": api.token, "run": "storm"}
    stopped_us: list[float] = []
    for _ in range(rounds):
        attached = attach_process(pid, options, say=print)
        detached = detach_process(pid, say=print)
        assert attached.ok
        assert detached.ok
        assert not attached.already
        stopped_us.append(attached.stopped_us)
    return stopped_us


def report(stopped_us: list[float]) -> None:
    ordered = sorted(stopped_us)
    print(
        f"{len(ordered)} rounds, stopped: median {ordered[len(ordered) // 2]:.0f} us, "
        f"worst {ordered[-1]:.0f} us"
    )


def test_a_job_that_trains_is_attached_to_and_shows_its_steps(api: Api, tmp_path: Path) -> None:
    with job(tmp_path / "job") as (pid,):
        options = {"url": api.url, "token": api.token, "run": "found"}
        outcome = attach_process(pid, options, say=print)
        before = len(losses(tmp_path / "job"))
        run = api.wait_for_run(
            "found",
            lambda run: (run["ranks"][0]["step"] or 0) > 20 and run["used_bytes"],
            "steps and memory of the device",
        )
        assert outcome.ok
        rank = run["ranks"][0]
        assert rank["pid"] == pid
        assert rank["device_uuid"].startswith("GPU-")
        assert run["peak_reserved_bytes"] > 0
        wait_until(
            lambda: len(losses(tmp_path / "job")), lambda done: done > before + 100, "it goes on"
        )
        assert detach_process(pid, say=print).ok


@pytest.mark.usefixtures("asked_once")
def test_attaching_again_and_again_changes_no_bit_of_a_cuda_job(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with job(tmp_path / "job") as (pid,):
        stopped_us = storm(api, pid, ROUNDS)
        after = len(losses(tmp_path / "job"))
        wait_until(
            lambda: len(losses(tmp_path / "job")), lambda done: done > after + 50, "it goes on"
        )
    seen = losses(tmp_path / "job")
    twin = twin_losses(tmp_path / "twin", len(seen))[0]
    with capsys.disabled():
        report(stopped_us)
    assert twin[: len(seen)] == seen[: len(twin)]
    assert min(len(twin), len(seen)) > 100


@pytest.mark.usefixtures("asked_once")
def test_attaching_to_both_ranks_of_a_ddp_job_at_once_changes_no_bit(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    with job(tmp_path / "job", ranks=2) as pids:
        options = {"url": api.url, "token": api.token, "run": "pair"}
        for pid in pids:
            assert attach_process(pid, options, say=print).ok
        run = api.wait_for_run(
            "pair",
            lambda run: [(rank["step"] or 0) > 20 for rank in run["ranks"]] == [True, True],
            "steps on both ranks of one run",
        )
        assert run["world_size"] == 2
        assert len({rank["device_uuid"] for rank in run["ranks"]}) == 2
        for pid in pids:
            assert detach_process(pid, say=print).ok
        with ThreadPoolExecutor(2) as pool:
            storms = pool.map(lambda pid: storm(api, pid, ROUNDS), pids)
            stopped_us = [value for each in storms for value in each]
    seen = [losses(tmp_path / "job", rank) for rank in (0, 1)]
    twin = twin_losses(tmp_path / "twin", len(seen[0]), ranks=2)
    with capsys.disabled():
        report(stopped_us)
    for mine, untouched in zip(seen, twin, strict=True):
        assert untouched[: len(mine)] == mine[: len(untouched)]
