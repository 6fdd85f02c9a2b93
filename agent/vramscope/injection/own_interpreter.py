"""Running the very Python that a process runs, where and as whom it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from vramscope.injection import entering

_SURROGATES: Final = "surrogateescape"


def run_own_interpreter(
    pid: int,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    argv0: str | None = None,
    timeout_s: float = 30.0,
) -> subprocess.CompletedProcess[str]:
    """Run the program of a process with other arguments, and wait for its end.

    It runs in the namespaces (user, mount, pid, network), the root and the working folder of the
    process, and as its user and groups if we are root. The program is the file that the process
    has open, whatever lies at its path now.

    Args:
        pid: of the process.
        arguments: after argv[0].
        environment: all of it.
        argv0: by which Python finds its folders; as the process's own by default.
        timeout_s: after it, everything that was started is killed.

    Raises:
        OSError: the process is gone, or its place cannot be entered (the message says what failed).
        subprocess.TimeoutExpired: it took longer.
    """
    reading, writing = os.pipe()
    try:
        command = [sys.executable, "-I", "-S", "-B", entering.__file__, str(pid), str(writing)]
        command += [_argv0(pid) if argv0 is None else argv0, *arguments]
        started = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(writing,),
            start_new_session=True,
        )
    finally:
        os.close(writing)
    try:
        with started:
            output, errors = _communicate(started, environment, timeout_s)
        with open(reading, encoding="utf-8", errors=_SURROGATES, closefd=False) as file:
            failure = file.read()
    finally:
        os.close(reading)
    if failure:
        number, _, text = failure.partition(" ")
        raise OSError(int(number), text)
    return subprocess.CompletedProcess(
        command,
        started.returncode,
        output.decode(errors="replace"),
        errors.decode(errors="replace"),
    )


def _communicate(
    started: subprocess.Popen[bytes], environment: Mapping[str, str], timeout_s: float
) -> tuple[bytes, bytes]:
    content = b"\0".join(
        f"{name}={value}".encode("utf-8", _SURROGATES) for name, value in environment.items()
    )
    try:
        return started.communicate(content, timeout=timeout_s)
    except BaseException:
        # A session of its own: what runs in another pid namespace belongs to it as well.
        os.killpg(started.pid, signal.SIGKILL)
        raise


def _argv0(pid: int) -> str:
    with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors=_SURROGATES) as file:
        return file.read().partition("\0")[0]
