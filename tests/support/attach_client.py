"""Run ``vramscope attach`` and ``detach`` as a user does, on jobs that know nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.job_process import REPOSITORY, child_environment, finish, start
from vramscope.attaching.arrive import client_is_gone


class Ended(NamedTuple):
    """What came of a command."""

    code: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        """Its output, which has to be JSON."""
        return json.loads(self.output)


def vramscope(*arguments: str, **environment: str) -> Ended:
    """Run one command of vramscope to its end."""
    return Ended(*finish(start_vramscope(*arguments, **environment)))


def start_vramscope(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start one command of vramscope."""
    return start([sys.executable, "-m", "vramscope", *arguments], **environment)


@contextmanager
def running(
    *command: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A job that runs until the block ends, from when it has written its first line on."""
    job = subprocess.Popen(
        command,
        env=child_environment() if environment is None else dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    try:
        assert job.stdout is not None
        assert job.stdout.readline(), finish(job)
        yield job
    finally:
        job.kill()
        job.communicate()


def abandoned_requests() -> set[Path]:
    """Folders of attach requests that nobody waits for any more and nobody has removed."""
    places = [Path("/tmp"), Path("/dev/shm")]
    folders = {each for place in places for each in place.glob("vramscope-attach-*")}
    return {each for each in folders if _is_abandoned(each)}


def _is_abandoned(path: Path) -> bool:
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False  # removed meanwhile
    try:
        return client_is_gone(folder)
    finally:
        os.close(folder)
