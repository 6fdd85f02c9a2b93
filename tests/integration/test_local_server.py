"""``vramscope run`` without a server: one is started beside the job, and the next job finds it."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, finish, foreign_lines, start, wait_until

JOB = REPOSITORY / "tests/support/jobs/cpu_training.py"

pytestmark = pytest.mark.torch


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A runtime and a data folder of their own; the server that lives there ends with the test."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    yield {"XDG_RUNTIME_DIR": str(runtime), "XDG_DATA_HOME": str(tmp_path / "data")}
    file = runtime / "vramscope" / "server.json"
    if file.exists():
        os.kill(json.loads(file.read_text())["pid"], signal.SIGTERM)
        wait_until(file.exists, lambda there: not there, "the local server to end", 20)


def vramscope(folders: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    return finish(start([sys.executable, "-m", "vramscope", *arguments], **folders))


def test_the_first_job_starts_it_and_the_second_finds_it(folders: dict[str, str]) -> None:
    job = ["run", "--emulate", str(JOB), "--steps=40", "--pause-s=0.1"]
    code, _, errors = vramscope(folders, *job)
    assert (code, foreign_lines(errors)) == (0, ["done"])
    file = Path(folders["XDG_RUNTIME_DIR"], "vramscope", "server.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    server = json.loads(file.read_text())
    assert f"vramscope: dashboard: {server['url']}/?token={server['token']}" in errors

    assert vramscope(folders, *job)[0] == 0
    assert json.loads(file.read_text()) == server
    code, listed, _ = vramscope(folders, "runs", "--json")
    runs: list[dict[str, Any]] = json.loads(listed)
    assert code == 0
    assert [(run["name"], run["state"], run["step"]) for run in runs] == [
        ("cpu_training", "ended", 40),
        ("cpu_training", "ended", 40),
    ]
