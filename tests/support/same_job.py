"""Run a script with and without the agent and demand that nobody could tell the difference."""

from __future__ import annotations

import functools
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.support.job_process import foreign_lines, plain_command, start, watched_command

# Steps by hand (no torch needed), output on both streams, an exit code of its own, and long
# enough for the agent to meet whatever its server does to it.
SCRIPT = """
import sys, time
import vramscope
for number in range({steps}):
    vramscope.log(loss=1 / (number + 1))
    vramscope.step()
    time.sleep(0.02)
print("trained", sys.argv[1:])
print("a warning of the script", file=sys.stderr)
sys.exit(3)
"""


@dataclass
class Outcome:
    """What a watched job did that the bare one did not.

    Attributes:
        notices: what it wrote of itself.
        extra_s: how much longer it took, without the time for which other processes had the
            processors of a busy machine.
    """

    notices: list[str]
    extra_s: float


def write_script(folder: Path, text: str = SCRIPT, steps: int = 10) -> Path:
    """Write a script into ``folder``."""
    path = folder / "train.py"
    path.write_text(text.replace("{steps}", str(steps)))
    return path


def run_both(
    script: Path,
    url: str,
    token: str = "any",
    options: tuple[str, ...] = (),
    prefix: tuple[str, ...] = (),
    **environment: str,
) -> Outcome:
    """Run the script bare and watched; fail unless output and exit code are the same.

    Args:
        prefix: command in front of both, such as one that sets a limit.
    """
    code, output, errors, plain_s = _run_bare(script.read_text(), script, prefix)
    command = watched_command(
        script, "--lr", "1", url=url, token=token, run="fault", options=options
    )
    ended, written, noted, watched_s = _run_alone([*prefix, *command], **environment)
    seen = (ended, written, foreign_lines(noted))
    if seen != (code, output, errors.splitlines()):
        raise AssertionError(
            f"bare: {code}, {output!r}, {errors!r}\nwatched: {ended}, {written!r}, {noted!r}"
        )
    notices = [line for line in noted.splitlines() if line.startswith("vramscope: ")]
    return Outcome(notices, watched_s - plain_s)


@functools.cache
def _run_bare(text: str, script: Path, prefix: tuple[str, ...]) -> tuple[int, str, str, float]:
    """Exit code, output, error output and time of the script alone."""
    command = [*prefix, *plain_command(script, "--lr", "1")]
    # Scripts that attach by themselves find no server, and start none.
    code, output, errors, alone_s = _run_alone(command, VRAMSCOPE_LOCAL_SERVER="0")
    errors = "".join(f"{line}\n" for line in foreign_lines(errors))
    return code, output, errors, alone_s


def _run_alone(command: list[str], **environment: str) -> tuple[int, str, str, float]:
    """Exit code, output, error output, and the time that its main thread would take by itself."""
    started_s = time.monotonic()
    with start(command, **environment) as job, ThreadPoolExecutor() as readers:
        assert job.stdout is not None
        assert job.stderr is not None
        output, errors = readers.submit(job.stdout.read), readers.submit(job.stderr.read)
        try:
            os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOWAIT)
        except BaseException:
            job.kill()
            raise
        taken_s = time.monotonic() - started_s
        # As long as nobody has taken its exit code, it is there to be asked.
        delayed_ns = Path(f"/proc/{job.pid}/schedstat").read_text(encoding="ascii").split()[1]
        return job.wait(), output.result(), errors.result(), taken_s - int(delayed_ns) / 1e9
