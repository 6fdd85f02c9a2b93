"""Runs a script under the agent against a server, and keeps all that is ever found in it."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.job_process import Api, finish, start, wait_until, watched_command

POLL_S = 0.25
JUDGED_WITHIN_S = 30.0


@dataclass
class CaseRun:
    """What came of one job.

    Args:
        code, output, errors: as the job ended.
        versions: every finding as it was at any time that was looked at, the oldest first.
        findings: all as they are in the end, the newest first.
        ooms: its reports of running out of memory.
        run: what the server says of it in the end.
    """

    code: int = 0
    output: str = ""
    errors: str = ""
    versions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    findings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    ooms: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    run: dict[str, Any] = field(default_factory=dict[str, Any])

    def told(self) -> str:
        """Everything that was told, for a person whose test has failed."""
        lines = [
            f"{each['kind']} {each['severity']} {each['stage']} {each['state']}: {each['summary']}"
            f"\n    {each['detail']}\n    culprits {json.dumps(each['culprits'])}"
            f"\n    remedies {json.dumps(each['remedies'])}"
            for each in self.versions
        ]
        return "\n".join(["--- told ---", *lines, "--- written ---", self.errors[-2000:]])


def run_case(
    api: Api,
    script: Path,
    *arguments: str,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> CaseRun:
    """Run a script to its end and until the server has judged it for the last time."""
    name = f"{script.stem}-{uuid.uuid4().hex[:8]}"
    command = watched_command(
        script, *arguments, url=api.url, token=api.token, run=name, options=options
    )
    return watch_job(api, name, command, OMP_NUM_THREADS="1", **(environment or {}))


def watch_job(api: Api, name: str, command: Sequence[str], **environment: str) -> CaseRun:
    """Run a command to its end, and until its run, which has this name, is judged for good."""
    found = CaseRun()
    seen: set[str] = set()
    process = start(command, **environment)
    try:
        while process.poll() is None:
            _look(api, name, found, seen)
            _pause(process)
    except BaseException:
        process.kill()
        raise
    found.code, found.output, found.errors = finish(process)
    api.wait_for_run(name, lambda run: run["state"] == "ended", "to end", JUDGED_WITHIN_S)
    wait_until(lambda: _is_judged(api, name), bool, f"{name} to be judged", JUDGED_WITHIN_S)
    _look(api, name, found, seen)
    found.ooms = api.get(f"/api/v1/runs/{name}/ooms")["ooms"]
    found.run = api.get(f"/api/v1/runs/{name}")
    return found


def _pause(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return


def _look(api: Api, name: str, found: CaseRun, seen: set[str]) -> None:
    try:
        found.findings = api.get(f"/api/v1/runs/{name}/findings")["findings"]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return
    for each in reversed(found.findings):
        version = json.dumps({k: each[k] for k in ("id", "kind", *_TOLD)}, sort_keys=True)
        if version not in seen:
            seen.add(version)
            found.versions.append(each)


_TOLD = ("severity", "stage", "summary", "detail", "culprits", "remedies")


def _is_judged(api: Api, name: str) -> bool:
    ended_ns = api.get(f"/api/v1/runs/{name}")["ended_ns"]
    answer = api.get(f"/api/v1/runs/{name}/findings")
    is_last = (answer["judged_ns"] or 0) >= ended_ns
    return is_last and not any(each["state"] == "open" for each in answer["findings"])
