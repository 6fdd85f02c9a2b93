"""Jobs of real frameworks, with the callback and without: the same steps, and more to know."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, foreign_lines, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

JOBS = REPOSITORY / "tests/support/jobs"
STEPS = 12
LOSSES = {"hf_trainer": 12, "lightning_fit": 24, "accelerate_loop": 24}


class Watched:
    """What the server knows of one job, and what the job printed."""

    def __init__(self, api: Api, name: str, output: str) -> None:
        self.losses = [line for line in output.splitlines() if line.startswith("loss ")]
        self.run = api.wait_for_run(name, lambda run: run["state"] == "ended", "to end")
        self._api = api

    def columns(self) -> dict[str, list[Any]]:
        path = f"/api/v1/runs/{self.run['id']}/steps?rank=0"
        columns: dict[str, list[Any]] = self._api.get(path)["columns"]
        return columns

    def stretches(self, name: str) -> list[dict[str, Any]]:
        """Data of the finished stretches in a phase, one each."""
        events = self._api.get(f"/api/v1/runs/{self.run['id']}/events?kind=phase")["events"]
        found = [event["data"] for event in events if event["data"]["phase"] == name]
        return [data for data in found if data["end_ns"] is not None]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        yield Api(server.url, server.token)


@pytest.fixture(scope="module", params=LOSSES)
def jobs(request: pytest.FixtureRequest, api: Api) -> tuple[str, Watched, Watched]:
    """Name of a job; the job without and with its callback."""
    pytest.importorskip({"hf": "transformers"}.get(request.param[:2], request.param.split("_")[0]))
    script = JOBS / f"{request.param}.py"
    names = (f"{request.param}-plain", f"{request.param}-told")
    started = [
        start(watched_command(script, *arguments, url=api.url, token=api.token, run=name))
        for name, arguments in zip(names, ((), ("--callback",)), strict=True)
    ]
    watched: list[Watched] = []
    for name, job in zip(names, started, strict=True):
        code, output, errors = finish(job)
        assert (code, foreign_lines(errors)) == (0, [])
        watched.append(Watched(api, name, output))
    return request.param, watched[0], watched[1]


def test_training_is_the_same_and_every_step_counts_once(
    jobs: tuple[str, Watched, Watched],
) -> None:
    name, plain, told = jobs
    assert plain.losses == told.losses
    assert len(plain.losses) == LOSSES[name]
    for watched in (plain, told):
        (rank,) = watched.run["ranks"]
        assert rank["steps_received"] == STEPS


def test_evaluation_is_known_either_way(jobs: tuple[str, Watched, Watched]) -> None:
    name, plain, told = jobs
    for watched, source in ((plain, "loader"), (told, "callback")):
        # A tracker of accelerate is not told when evaluation begins.
        expected = "loader" if name == "accelerate_loop" else source
        stretches = [
            stretch for stretch in watched.stretches("eval") if stretch["source"] == expected
        ]
        # Lightning checks its validation first, for two batches.
        ends = [stretch["end_step"] for stretch in stretches if stretch["end_step"]]
        assert ends == [6, 12]


def test_a_checkpoint_is_known_where_it_is_told_or_takes_its_time(
    jobs: tuple[str, Watched, Watched],
) -> None:
    name, plain, told = jobs
    if name == "hf_trainer":
        assert [each["end_step"] for each in told.stretches("checkpoint")] == [6, 12]
    if name == "accelerate_loop":
        for watched in (plain, told):
            stretches = watched.stretches("checkpoint")
            assert [each["end_step"] for each in stretches] == [6, 12]
            assert {each["source"] for each in stretches} == {"save"}


def test_waiting_for_data_is_known_either_way(jobs: tuple[str, Watched, Watched]) -> None:
    for watched in jobs[1:]:
        columns = watched.columns()
        waits_us = columns["step.data_wait_us"]
        assert len(waits_us) == STEPS
        assert all(wait_us >= 0 for wait_us in waits_us)
        assert sum(waits_us) > 0
        durations_us = columns["step.duration_us"]
        assert all(
            wait_us <= duration_us
            for wait_us, duration_us in zip(waits_us[1:], durations_us[1:], strict=True)
        )


def test_only_the_callback_knows_epoch_loss_and_batch_size(
    jobs: tuple[str, Watched, Watched],
) -> None:
    _, plain, told = jobs
    assert not [name for name in plain.columns() if name.startswith("user.")]
    columns = told.columns()
    assert set(columns["user.batch_size"]) in ({8}, {4})
    assert columns["user.epoch"] == sorted(columns["user.epoch"])
    losses = [loss for loss in columns["user.loss"] if loss is not None and not math.isnan(loss)]
    printed = {float.fromhex(line.split()[1]) for line in told.losses}
    assert len(losses) >= STEPS - 1
    assert set(losses) <= printed
