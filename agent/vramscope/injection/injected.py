"""Putting one line of Python into a running process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vramscope.injection.interpreter import Interpreter
from vramscope.injection.pending_call import arm_pending_call
from vramscope.injection.remote_exec import arm_remote_exec
from vramscope.injection.stages import AtStage, no_stage


@dataclass(frozen=True)
class Injected:
    """A line that is armed: the main thread of the process runs it when it next looks.

    Attributes:
        stopped_us: how long the main thread was held up, in us; 0 where it was not stopped.
        method: how it was done.
    """

    stopped_us: float
    method: Literal["pending_call", "remote_exec"]


def inject(
    interpreter: Interpreter,
    source: bytes,
    *,
    script: str | None = None,
    at_stage: AtStage = no_stage,
) -> Injected:
    """Arm Python source in a process; it runs later, on the main thread.

    It runs in ``__main__``, or from Python 3.14 on in a namespace of its own.

    Args:
        interpreter: of the process.
        source: less than 1024 bytes without NUL. It must not raise: the program would see it.
        script: path, as the process sees it, of a file with the same source; needed for
            ``remote_exec`` only.
        at_stage: called at each stage (tests).

    Raises:
        InjectionError: it did not work; the process runs on as before.
        ValueError: the source does not fit, or the script is missing.
    """
    if interpreter.how == "remote_exec":
        if script is None:
            raise ValueError("remote_exec needs a script")
        arm_remote_exec(interpreter, script)
        return Injected(0.0, "remote_exec")
    return Injected(arm_pending_call(interpreter, source, at_stage), "pending_call")
