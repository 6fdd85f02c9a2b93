"""Run a training script with or without the agent, as a real process, and ask the server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = ("protocol", "agent", "analysis", "server", "frontend")

T = TypeVar("T")


_SPOOL = "VRAMSCOPE_SPOOL_DIR"
"""The tests' own, so that their jobs leave nothing among what real jobs have left."""


def child_environment(**extra: str) -> dict[str, str]:
    """Environment in which a child finds the source roots and none of our own settings."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("VRAMSCOPE_") or k == _SPOOL
    }
    roots = [str(REPOSITORY / root) for root in SOURCE_ROOTS]
    environment["PYTHONPATH"] = os.pathsep.join([*roots, environment.get("PYTHONPATH", "")])
    environment["PYTHONUNBUFFERED"] = "1"
    return environment | extra


def plain_command(script: Path, *arguments: str) -> list[str]:
    """Command line of the script without the agent."""
    return [sys.executable, str(script), *arguments]


def watched_command(
    script: Path, *arguments: str, url: str, token: str, run: str, options: Sequence[str] = ()
) -> list[str]:
    """Command line of the same script under ``vramscope run``."""
    launcher = [sys.executable, "-m", "vramscope", "run", "--url", url, "--token", token]
    return [*launcher, "--run", run, *options, "--", str(script), *arguments]


def start(command: Sequence[str], **environment: str) -> subprocess.Popen[str]:
    """Start a command with captured output."""
    return subprocess.Popen(
        command,
        env=child_environment(**environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def finish(process: subprocess.Popen[str], timeout_s: float = 240.0) -> tuple[int, str, str]:
    """Wait for the process; its exit code, output, and error output."""
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise AssertionError(
            f"the job did not end within {timeout_s} s; it wrote: {output}\n{errors}"
        ) from None
    return process.returncode, output, errors


def foreign_lines(errors: str) -> list[str]:
    """Lines of error output that are not the launcher's own notices."""
    return [line for line in errors.splitlines() if not line.startswith("vramscope: ")]


class Api:
    """REST calls of a test against one server."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self.token = token

    def get(self, path: str) -> Any:
        """Decoded answer to a GET."""
        return self._call(urllib.request.Request(f"{self.url}{path}"))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Decoded answer to a POST."""
        request = urllib.request.Request(
            f"{self.url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        return self._call(request)

    def command(self, run: str, name: str, **body: Any) -> dict[str, Any]:
        """Send a command to all ranks and wait for its final state."""
        posted = self.post(f"/api/v1/runs/{run}/commands", {"name": name, "ranks": "all", **body})
        path = f"/api/v1/runs/{run}/commands/{posted['id']}"
        final = {"done", "failed", "refused", "expired"}
        return wait_until(
            lambda: self.get(path),
            lambda command: command["state"] in final,
            f"command {name} to end",
            timeout_s=60,
        )

    def wait_for_run(
        self,
        run: str,
        predicate: Callable[[dict[str, Any]], bool],
        what: str,
        timeout_s: float = 30,
    ) -> dict[str, Any]:
        """Poll a run, ranks included, until ``predicate`` holds."""
        return wait_until(
            lambda: self._run_or_none(run),
            lambda found: found is not None and predicate(found),
            f"run {run}: {what}",
            timeout_s,
        )

    def _run_or_none(self, run: str) -> Any:
        try:
            return self.get(f"/api/v1/runs/{run}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def _call(self, request: urllib.request.Request) -> Any:
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())


def wait_until(
    read: Callable[[], T], predicate: Callable[[T], bool], what: str, timeout_s: float = 30
) -> T:
    """Poll ``read`` until ``predicate`` holds; fail with the last value after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = read()
        if predicate(value):
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s for {what}; last seen: {value}")
        time.sleep(0.05)
