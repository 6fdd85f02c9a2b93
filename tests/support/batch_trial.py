"""Holds the advice on the batch size against what a training can really do."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.job_process import (
    REPOSITORY,
    Api,
    child_environment,
    finish,
    start,
    wait_until,
    watched_command,
)

JOB = REPOSITORY / "tests/support/jobs/batch_training.py"
RECORDED_STEPS = 2


@dataclass(frozen=True)
class Trial:
    """Where a model is trained.

    Args:
        model: one of those of batch_models.py.
        launcher: options of ``vramscope run``: ``--emulate`` and a capacity, or none on a GPU.
        job: options of the job.
    """

    model: str
    launcher: Sequence[str] = ()
    job: Sequence[str] = ()

    def advised(
        self, api: Api, plan: str, record_after: int | None = None, pause_s: float = 0.0
    ) -> dict[str, Any]:
        """Train under the agent, and ask the server in the end.

        Args:
            api: the server.
            plan: the sizes, see the job.
            record_after: begin to record some steps when so many are over; None records nothing.
            pause_s: after each step, so that they are not all over before anybody can ask.
        """
        run = f"{self.model}-{uuid.uuid4().hex[:8]}"
        arguments = [self.model, plan, *self.job, f"--pause-s={pause_s}"]
        command = watched_command(
            JOB, *arguments, url=api.url, token=api.token, run=run, options=self.launcher
        )
        process = start(command, OMP_NUM_THREADS="1")
        try:
            if record_after is not None:
                self._record(api, run, record_after)
        except BaseException:
            process.kill()
            raise
        code, output, errors = finish(process)
        assert code == 0, errors
        assert json.loads(output.splitlines()[-1])["failed_at"] is None, output
        api.wait_for_run(run, lambda found: found["state"] == "ended", "to end")
        path = f"/api/v1/runs/{run}/batch"
        return wait_until(
            lambda: api.get(path),
            lambda answer: (
                bool(answer["advice"]) and (record_after is None or answer["advice"]["is_replayed"])
            ),
            "the advice",
            timeout_s=120,
        )

    def outcome(
        self, plan: str, *launcher: str, job: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """What the job says when nobody watches it but an emulated device, if there is one."""
        command = [str(JOB), self.model, plan, *(self.job if job is None else job)]
        if launcher:
            run = [sys.executable, "-m", "vramscope", "run", "--no-local-server"]
            command = [*run, "--exit-timeout-s=0", *launcher, *command]
        else:
            command = [sys.executable, *command]
        code, output, errors = finish(start(command, **child_environment(OMP_NUM_THREADS="1")), 600)
        assert code == 0, errors
        found: dict[str, Any] = json.loads(output.splitlines()[-1])
        return found

    def _record(self, api: Api, run: str, after: int) -> None:
        api.wait_for_run(run, lambda found: (found["step"] or 0) >= after, "to train", 120)
        params = {"steps": RECORDED_STEPS, "mode": "alloc"}
        command = api.command(run, "history_start", params=params)
        assert command["state"] == "done", command
