"""Sends every command to a job at a moment that is bad for it, and holds that it does no harm."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    plain_command,
    start,
    wait_until,
    watched_command,
)
from tests.support.server_thread import TOKEN, server_thread
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.commands import FINAL_STATES
from vramscope_server.settings import Limits

JOB = REPOSITORY / "tests/support/jobs/bad_moments.py"
RUN = "moment"
SAMPLES = 230 * 8
LIMITS = Limits(command_burst=1000, command_open=200, command_open_caller=200)
SOON_S = 1.0
"""Deadline of a command that is not to see the end of the moment."""

PARAMS: dict[str, dict[str, Any]] = {
    "profile_modules": {"steps": 2},
    "history_start": {"mode": "all", "max_mib": 32},
    "explain_growth": {"looks": 3, "max_steps": 20},
    "watch_map": {"seconds": 1},
    "set_batch_size": {"batch_size": 4},
    "set_accumulation": {"accumulation": 4},
    "set_allocator_settings": {"settings": "max_split_size_mb:128"},
    "set_memory_fraction": {"fraction": 0.9},
    "set_gc_thresholds": {"thresholds": [800, 12, 12]},
    "set_sampling_rate": {"rate_hz": 5},
    "pause": {"max_s": 0.3},
}
SIZES = ("set_batch_size", "set_accumulation")
CHANGES_LOSSES = (*SIZES, "stop")
"""With these training is not the same any more, or over."""
LIBRARIES = ("clear_plan_caches", "clear_cublas_workspaces")
"""Refused where there are graphs; an emulated device has none."""
TOO_SOON = ("history_dump",)
"""A snapshot of the same step may still be written."""


def harmless() -> list[str]:
    """Commands after which training is the same; what ends a recording comes last."""
    names = [name for name in COMMANDS if name not in CHANGES_LOSSES]
    return sorted(names, key=lambda name: name == "history_stop")


@dataclass(frozen=True)
class BadMoment:
    """One moment of ``jobs/bad_moments.py``.

    Args:
        name: of the moment.
        device: ``cuda``, or ``cpu`` for an emulated one.
        folder: for the server and the jobs.
    """

    name: str
    device: str
    folder: Path

    def check_harmless(self) -> None:
        """All that training does not change with: every loss has the same bits."""
        twin = self._start_twin()
        try:
            told = self._told(harmless())
            code, output, errors = finish(twin)
        finally:
            twin.kill()
            twin.wait()
        assert code == 0, output + errors
        assert self._wrong(told) == []
        assert self._text("job", "losses") == self._text("twin", "losses")
        assert self._text("job", "seen") == self._text("twin", "seen")

    def check_sizes(self) -> None:
        """A change of the sizes, and others that come too soon after it: no sample is lost."""
        told = self._told(SIZES)
        states = {"exit": "failed", "capture": "refused"}
        assert told[0]["state"] == states.get(self.name, "done"), told[0]
        assert int(self._text("job", "seen").split()[1]) == SAMPLES

    def check_stop(self) -> None:
        """The end of training: in order, if there is a further step."""
        (told,) = self._told(["stop"])
        is_done = self.name != "exit"
        assert (told["state"] == "done") == is_done, told
        assert (int(self._text("job", "seen").split()[1]) < SAMPLES) == is_done

    def _wrong(self, receipts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those that were not run later, where there was a later step, and those that harmed."""
        if self.name == "exit":
            at_boundary = _at_boundary(harmless())
            return [
                each
                for each in receipts
                if each["name"] in at_boundary
                and (each["state"] == "done" or "othing was changed" not in each["message"])
            ]
        excused: tuple[str, ...] = TOO_SOON
        if self.name == "compile":
            excused = (*TOO_SOON, "profile_modules")  # it would have the job compile again
        elif self.device == "cpu" or self.name == "capture":
            excused = (*TOO_SOON, *LIBRARIES)
        return [
            each for each in receipts if each["state"] != "done" and each["name"] not in excused
        ]

    def _told(self, commands: Collection[str]) -> list[dict[str, Any]]:
        """What became of each; and what every moment has in common."""
        with server_thread(self.folder, LIMITS) as server:
            told = self._told_by(Api(server.url, TOKEN), commands)
        for each in told:
            print(self.name, {key: each[key] for key in ("name", "state", "step", "message")})
        return told

    def _told_by(self, api: Api, commands: Collection[str]) -> list[dict[str, Any]]:
        folder = self._folder("job")
        options = ["--emulate"] if self.device == "cpu" else []
        arguments = [str(folder), self.name, self.device]
        command = watched_command(
            JOB, *arguments, url=api.url, token=TOKEN, run=RUN, options=options
        )
        job = start(command, VRAMSCOPE_EXIT_TIMEOUT_S="20", OMP_NUM_THREADS="1")
        try:
            wait_until(lambda: self._is_there(job), bool, "the moment", timeout_s=120)
            soon = [_post(api, each, deadline_s=SOON_S) for each in _at_boundary(commands)]
            posted = [_post(api, each) for each in commands]
            dry = [_post(api, each, dry_run=True) for each in commands if COMMANDS[each].dry_run]
            expired = [_final(api, each) for each in soon]
            read = [
                _final(api, each) for each in posted if each["name"] not in _at_boundary(commands)
            ]
            (folder / "go").touch()
            code, output, errors = finish(job, timeout_s=150)
            assert code == 0, output + errors
            told = [_final(api, each) for each in (*posted, *dry)]
        finally:
            job.kill()
            job.wait()
        assert {each["state"] for each in expired} <= {"expired"}, expired
        assert {each["state"] for each in read} <= {"done"}, read
        return told

    def _is_there(self, job: subprocess.Popen[str]) -> bool:
        assert job.poll() is None, job.communicate()
        return (self._folder("job") / "in").exists()

    def _start_twin(self) -> subprocess.Popen[str]:
        """The same with nobody watching."""
        folder = self._folder("twin")
        (folder / "go").touch()
        arguments = [str(folder), self.name, self.device]
        return start(plain_command(JOB, *arguments), OMP_NUM_THREADS="1")

    def _folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return folder

    def _text(self, folder: str, name: str) -> str:
        return (self._folder(folder) / name).read_text()


def _at_boundary(commands: Collection[str]) -> list[str]:
    return [each for each in commands if COMMANDS[each].place == "step boundary"]


def _post(api: Api, name: str, **body: Any) -> dict[str, Any]:
    posted: dict[str, Any] = api.post(
        f"/api/v1/runs/{RUN}/commands",
        {"name": name, "ranks": "all", "params": PARAMS.get(name, {}), **body},
    )
    return posted


def _final(api: Api, posted: dict[str, Any]) -> dict[str, Any]:
    """The receipt, once it is the last word."""
    command = wait_until(
        lambda: api.get(f"/api/v1/runs/{RUN}/commands/{posted['id']}"),
        lambda found: found["state"] in FINAL_STATES,
        f"{posted['name']} to end",
        timeout_s=60,
    )
    (receipt,) = command["receipts"].values()
    return {"name": command["name"], **receipt}
