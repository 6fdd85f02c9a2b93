"""Snapshots on their way through a server that is killed, and from a job that knows nothing."""

from __future__ import annotations

import gzip
import hashlib
import operator
import os
import random
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    start,
    wait_until,
    watched_command,
)
from tests.support.server_process import ServerProcess
from vramscope.notices import Notices
from vramscope.outbox.losses import Losses
from vramscope.outbox.outbox import Outbox
from vramscope.transport.address import parse_address
from vramscope.transport.backoff import Backoff
from vramscope.transport.snapshot_lane import Shipment, SnapshotLane
from vramscope.transport.transport import Target, Transport
from vramscope_protocol.messages import Event, RankInfo, Register, RunInfo, SnapshotBegin

JOB = REPOSITORY / "tests/support/jobs/cpu_training.py"
RECORDING_JOB = REPOSITORY / "tests/support/jobs/recording_training.py"
MIB = 1 << 20


def download(api: Api, path: str) -> bytes:
    request = urllib.request.Request(f"{api.url}{path}")
    request.add_header("Authorization", f"Bearer {api.token}")
    with urllib.request.urlopen(request, timeout=60) as response:
        content: bytes = response.read()
    return content


def test_a_server_killed_in_the_middle_ends_with_the_same_bytes(tmp_path: Path) -> None:
    raw = random.Random(5).randbytes(40 * MIB)
    path = tmp_path / "s1.pickle.gz"
    path.write_bytes(gzip.compress(raw, 1))
    ends: list[str] = []
    lane = SnapshotLane(lambda shipment, reason: ends.append(reason))
    begin = SnapshotBegin(
        "s1", 1, len(raw), path.stat().st_size, hashlib.sha256(raw).hexdigest(), step=3
    )
    outbox = Outbox(MIB, None, Losses(), Notices())
    register = Register("stream-1", RunInfo("run-1", "run"), RankInfo(0, "elsewhere", 1))
    folder = tmp_path / "server"
    folder.mkdir()
    with ServerProcess(folder) as server:
        api = Api(server.url, server.token)
        target = Target(parse_address(server.url), server.token)
        transport = Transport(
            outbox,
            lambda: target,
            lambda: register,
            lambda command: None,
            Notices(),
            backoff=Backoff(0.05, 0.2),
            snapshots=lane,
        )
        transport.start()
        lane.add(Shipment(begin, str(path)))
        try:
            for _ in range(2):
                before_bytes = received(api)
                wait_until(
                    lambda: received(api),
                    partial(operator.lt, before_bytes + MIB),
                    "the snapshot to be on its way",
                )
                server.kill()
                assert not ends
                server.restart()
            outbox.put(Event(0, 1, "mark"))
            wait_until(lambda: outbox.is_empty, bool, "live data to arrive beside it")
            wait_until(lambda: list(ends), bool, "the snapshot to arrive", timeout_s=120)
        finally:
            transport.stop(5)
        assert ends == [""]
        assert download(api, "/api/v1/snapshots/s1/pickle") == raw
        found = api.get("/api/v1/snapshots/s1")
        assert (found["state"], found["step"]) == ("complete", 3)
        assert not path.exists()


def received(api: Api) -> int:
    try:
        return int(api.get("/api/v1/snapshots/s1")["received_bytes"])
    except OSError:
        return 0


def history(api: Api, run: str, **params: Any) -> dict[str, Any]:
    command = api.command(run, "history_start", params=params)
    receipt: dict[str, Any] = command["receipts"]["0"]
    return receipt


@pytest.mark.torch
def test_a_job_is_recorded_from_a_shell_and_ends_as_ever(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        job = start(
            watched_command(
                JOB,
                "--until-terminated",
                "--pause-s=0.005",
                url=server.url,
                token=server.token,
                run="recorded",
                options=["--emulate", "--spool-dir", str(tmp_path / "spool")],
            )
        )
        api = Api(server.url, server.token)
        try:
            api.wait_for_run("recorded", lambda run: run["ranks"][0]["step"], "to take a step")
            receipt = history(api, "recorded", steps=5, mode="all", backward_lines=True)
            assert receipt["state"] == "done", receipt
            result = receipt["result"]
            path = f"/api/v1/snapshots/{result['snapshot']}"
            wait_until(lambda: api.get(path)["state"], lambda s: s == "complete", "the snapshot")
            pickled = download(api, f"{path}/pickle")
            assert len(pickled) == result["raw_bytes"]
            file = tmp_path / "s.pickle"
            file.write_bytes(pickled)
            check_snapshot(file)
            job.terminate()
            code, output, errors = finish(job)
        finally:
            job.kill()
        assert (code, output, foreign_lines(errors)) == (0, "", ["done"])
        assert os.listdir(tmp_path / "spool") == []


def check_snapshot(file: Path) -> None:
    import pickle

    viz = pytest.importorskip("torch.cuda._memory_viz")
    snapshot = pickle.loads(file.read_bytes())
    assert "MemoryViz" in viz.trace_plot(snapshot)
    texts = {entry.get("user_metadata", "") for entry in snapshot["device_traces"][0]}
    assert any(text.startswith(f"backward of {JOB}:") for text in texts)


@pytest.mark.torch
def test_a_jobs_own_recording_is_as_without_us(tmp_path: Path) -> None:
    """It records itself, is asked to be recorded by us, and prints what it has recorded."""
    with ServerProcess(tmp_path) as server:
        command = watched_command(
            RECORDING_JOB,
            url=server.url,
            token=server.token,
            run="own",
            options=["--emulate"],
        )
        job = start(command)
        api = Api(server.url, server.token)
        try:
            api.wait_for_run("own", lambda run: run["ranks"][0]["step"], "to take a step")
            refused = history(api, "own", steps=2)
            assert refused["state"] == "failed"
            assert "a history of its own" in refused["message"]
            looked = api.command("own", "snapshot", params={"traces": True})
            assert looked["receipts"]["0"]["state"] == "done"
            assert looked["receipts"]["0"]["result"]["entries"] > 0
            job.terminate()
            code, output, errors = finish(job)
        finally:
            job.kill()
        assert (code, foreign_lines(errors)) == (0, [])
        assert output.split() == ["alloc", "free_requested", "free_completed"] * 3
