"""A job on an emulated device, and a server that judges it twice a second."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.job_process import Api, finish, start, watched_command
from tests.support.server_thread import TOKEN, server_thread
from vramscope_server.settings import Limits


class JudgedJob:
    """A running job; ends with :meth:`end`, or is killed with its server."""

    def __init__(self, api: Api, run: str, process: subprocess.Popen[str]) -> None:
        self._api = api
        self._run = run
        self._process = process

    def wait_for_step(self, step: int) -> None:
        """Wait until it has trained beyond a step."""
        self._api.wait_for_run(self._run, lambda run: (run["step"] or 0) > step, f"step {step}")

    def finding(self, kind: str) -> dict[str, Any] | None:
        """What is told of a kind, if anything is."""
        found = self._api.get(f"/api/v1/runs/{self._run}/findings")["findings"]
        return next((each for each in found if each["kind"] == kind), None)

    def record(self, steps: int) -> None:
        """Have its next steps recorded."""
        params = {"steps": steps}
        command = self._api.command(self._run, "history_start", params=params, deadline_s=60)
        assert command["receipts"]["0"]["state"] == "done", command

    def end(self) -> None:
        """Ask it to end, and hold that it does so in order."""
        self._process.terminate()
        code, output, errors = finish(self._process)
        assert code == 0, output + errors


@contextmanager
def judged_job(script: Path, folder: Path) -> Iterator[JudgedJob]:
    """Run a script on an emulated device of 1 GiB; its server keeps what it has in ``folder``."""
    with server_thread(folder, Limits(judge_interval_s=0.5)) as server:
        command = watched_command(
            script,
            url=server.url,
            token=TOKEN,
            run="judged",
            options=["--emulate", "--capacity=1GiB"],
        )
        process = start(command)
        try:
            yield JudgedJob(Api(server.url, TOKEN), "judged", process)
        finally:
            process.kill()
            process.communicate()
