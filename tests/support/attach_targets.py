"""Programs to be reached into, and how to see that they have not noticed."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.job_process import child_environment
from vramscope.injection import Interpreter, find_interpreter

JOBS = Path(__file__).parent / "jobs"
COUNT = b"__import__('__main__').counted += 1\n"
"""A line that tells, at the end of a job, that it has run."""


@dataclass
class AttachTarget:
    """A running job.

    Attributes:
        until: file that ends it.
        result: its last line, once :meth:`end` has been called: rounds, wrong, counted.
    """

    process: subprocess.Popen[str]
    until: Path

    @property
    def pid(self) -> int:
        """Of the job."""
        return self.process.pid

    @property
    def interpreter(self) -> Interpreter:
        """Of the job."""
        return find_interpreter(self.pid)

    def end(self) -> dict[str, Any]:
        """Tell it to end, and give what it says: rounds done, wrong ones, lines that ran."""
        self.until.touch()
        output, errors = self.process.communicate(timeout=60)
        assert (self.process.returncode, errors) == (0, "")
        result: dict[str, Any] = json.loads(output)
        return result

    def end_unharmed(self, lines: int) -> None:
        """It has run on, computed right, and run as many lines as were put into it."""
        result = self.end()
        assert result["rounds"] > 0
        assert (result["wrong"], result["counted"]) == (0, lines), result


@contextlib.contextmanager
def attach_target(
    folder: Path, job: str, mode: str, executable: str | Path = sys.executable
) -> Iterator[AttachTarget]:
    """Start ``jobs/attach_<job>.py``; it is there once this returns, and gone after the block.

    Args:
        folder: for the file that ends it.
        job: ``working`` or ``waiting``.
        mode: what it works or waits at.
        executable: the Python that runs it.
    """
    until = folder / f"until-{job}-{mode}"
    process = subprocess.Popen(
        [str(executable), str(JOBS / f"attach_{job}.py"), mode, str(until)],
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield AttachTarget(process, until)
    finally:
        process.kill()
        process.communicate()
        until.unlink(missing_ok=True)


def wait_until(is_so: Callable[[], bool], timeout_s: float = 30.0) -> None:
    """Wait for something that has no event to wait for, such as a line in /proc."""
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, "it never came to be"
        time.sleep(0.005)
