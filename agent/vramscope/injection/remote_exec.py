"""Arming a script by ``sys.remote_exec``, for Python 3.14 and later (PEP 768).

Only a Python of the same minor version may do that, so the process's own is asked to.
"""

from __future__ import annotations

import subprocess
from typing import Final

from vramscope.injection.errors import InjectionError
from vramscope.injection.interpreter import Interpreter
from vramscope.injection.own_interpreter import run_own_interpreter
from vramscope.injection.process_status import read_process_status

_TIMEOUT_S: Final = 30.0
_FAILED: Final = 3
_CODE: Final = f"""\
import sys
try:
    sys.remote_exec(int(sys.argv[1]), sys.argv[2])
except Exception as error:
    sys.stderr.write(type(error).__name__ + ": " + str(error))
    sys.exit({_FAILED})
"""
# What it takes to find the shared and the standard library; nothing of the program's own.
_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME")


def arm_remote_exec(interpreter: Interpreter, script: str) -> None:
    """Let the main thread run a script when it next looks; nothing is stopped.

    Args:
        interpreter: of the process.
        script: path, as the process sees it, of a file that it can read.

    Raises:
        InjectionError: ``permission``, ``gone``, ``disabled`` or ``failed``.
    """
    pid = interpreter.pid
    try:
        status = read_process_status(pid)
        variables = _environment(pid)
        if status.started_ticks != interpreter.started_ticks:
            raise InjectionError("the process has ended", "gone")
        done = run_own_interpreter(
            pid,
            ["-S", "-P", "-B", "-c", _CODE, str(status.innermost_pid), script],
            environment=variables,
            timeout_s=_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        raise InjectionError("the process has ended", "gone") from error
    except OSError as error:
        raise InjectionError(f"its Python cannot be run ({error})", "failed") from error
    except subprocess.TimeoutExpired as error:
        raise InjectionError("its Python takes too long to start", "failed") from error
    if done.returncode:
        raise _failure(done)


def _environment(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/environ", encoding="utf-8", errors="surrogateescape") as file:
        pairs = (text.partition("=") for text in file.read().split("\0"))
    return {name: value for name, _, value in pairs if name in _VARIABLES}


def _failure(done: subprocess.CompletedProcess[str]) -> InjectionError:
    words = done.stderr.strip().splitlines()
    text = words[-1][:300] if words else f"exit code {done.returncode}"
    if done.returncode != _FAILED:
        return InjectionError(f"its Python cannot be run ({text})", "failed")
    if text.startswith("PermissionError"):
        return InjectionError("the kernel does not allow to write its memory", "permission")
    if text.startswith("ProcessLookupError"):
        return InjectionError("the process has ended", "gone")
    if "not enabled" in text:
        return InjectionError("remote debugging is switched off in it", "disabled")
    return InjectionError(f"sys.remote_exec refused ({text})", "failed")
