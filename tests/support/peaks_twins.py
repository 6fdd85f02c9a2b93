"""Runs of the job that looks at its own peaks: watched, and twins that know the truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    plain_command,
    start,
    watched_command,
)
from tests.support.server_process import ServerProcess

JOB = REPOSITORY / "tests/support/jobs/peaks_training.py"
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
PEAKS = ("allocated", "active", "reserved", "requested")


class Twins:
    """Runs of the same script.

    Args:
        server: takes what the watched ones send.
        folder: for their own logs.
        steps: optimizer steps of each.
        width: of the model.
        options: for every run under vramscope, the twins of an emulated job included.
        emulated: whether the twins need vramscope too, for the device alone.
    """

    def __init__(
        self,
        server: ServerProcess,
        folder: Path,
        steps: int,
        *,
        width: int = 256,
        options: Sequence[str] = (),
        emulated: bool = False,
    ) -> None:
        self._server = server
        self._folder = folder
        self._steps = steps
        self._width = width
        self._options = options
        self._emulated = emulated
        self.api = Api(server.url, server.token)

    def watched(self, run: str, *arguments: str, options: Sequence[str] = ()) -> dict[str, Any]:
        """A run with the agent; what it found itself."""
        return self._run(run, arguments, [*self._options, *options], is_watched=True)

    def twin(self, name: str, *arguments: str) -> dict[str, Any]:
        """A run that is left alone."""
        return self._run(name, arguments, ["--no-peaks", *self._options], is_watched=self._emulated)

    def rows(self, run: str, *names: str) -> dict[str, list[int]]:
        """Columns of the step rows of a watched run, which has ended."""
        self.api.wait_for_run(run, lambda found: found["state"] == "ended", "to end")
        path = f"/api/v1/runs/{run}/steps?rank=0&fields={','.join(names)}"
        stored = self.api.get(path)
        assert stored["step"] == list(range(1, self._steps + 1))
        columns: dict[str, list[int]] = stored["columns"]
        return columns

    def notes(self, run: str) -> list[str]:
        """What was degraded."""
        status = self.api.get(f"/api/v1/runs/{run}")["ranks"][0]["status"]
        return list(status["notes"]) if status else []

    def _run(
        self, name: str, arguments: Sequence[str], options: Sequence[str], *, is_watched: bool
    ) -> dict[str, Any]:
        log = self._folder / f"{name}.json"
        sizes = [f"--steps={self._steps}", f"--width={self._width}"]
        parts = [*sizes, f"--log={log}", *arguments]
        if is_watched:
            command = watched_command(
                JOB,
                *parts,
                url=self._server.url,
                token=self._server.token,
                run=name,
                options=options,
            )
        else:
            command = plain_command(JOB, *parts)
        code, output, errors = finish(start(command, **DETERMINISTIC), timeout_s=300)
        assert (code, foreign_lines(errors)) == (0, []), output + errors
        found: dict[str, Any] = json.loads(log.read_text())
        return found


def step_peaks(columns: dict[str, list[int]]) -> list[list[int]]:
    """The four peaks of each step after the first, whose begin nobody saw."""
    names = [f"step.peak_{name}_bytes" for name in PEAKS]
    return [list(row) for row in zip(*(columns[name] for name in names), strict=True)][1:]
