"""Attach to a running process and detach from it, from beginning to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from vramscope.attaching.arming import Arming
from vramscope.attaching.importable import (
    ask_importable,
    check_importable,
    environment_of,
    install,
)
from vramscope.attaching.local_server import page_with_token, server_options
from vramscope.attaching.outcome import Answer, AttachError, Outcome
from vramscope.attaching.request import Request
from vramscope.attaching.waiting import DEFAULT_WAIT_S, Wait
from vramscope.injection import Injected, Interpreter, NotInjectable, find_interpreter
from vramscope.local.runtime_file import read_local_server
from vramscope.processes.permission import why_not_reachable
from vramscope.processes.process import NoSuchProcess, Process, read_process

_TRACED_FOR_S: Final = 1.0
_POLL_S: Final = 0.02
Say = Callable[[str], None]


def attach_process(
    pid: int,
    options: Mapping[str, object],
    *,
    wait_s: float = DEFAULT_WAIT_S,
    install_if_missing: bool = False,
    say: Say,
) -> Outcome:
    """Have process ``pid`` watch itself from now on.

    Args:
        pid: the process, by its number here.
        options: of the agent, as ``vramscope.attach`` takes them; ``None`` is not given.
        wait_s: how long its main thread may take to come back to Python.
        install_if_missing: install vramscope for its interpreter when it cannot import it.
        say: told in a line what takes long.

    Raises:
        AttachError: it cannot be attached to, or does not answer.
    """
    process, interpreter = _reach(pid)
    importable = ask_importable(process)
    if install_if_missing and not importable.version:
        say(f"installing vramscope for {importable.executable}")
        install(process, importable)
        importable = ask_importable(process)
    check_importable(process, importable)
    given = {name: value for name, value in options.items() if value is not None}
    if "url" not in given:
        given |= server_options(process, environment_of(process))
    question = {"action": "attach", "options": given, "folders": importable.folders}
    return _ask(process, interpreter, question, wait_s, say)


def detach_process(pid: int, *, wait_s: float = DEFAULT_WAIT_S, say: Say) -> Outcome:
    """Have process ``pid`` watch itself no longer, whoever attached it.

    Args:
        pid: the process, by its number here.
        wait_s: how long its main thread may take to come back to Python.
        say: told in a line what takes long.

    Raises:
        AttachError: it cannot be reached, or does not answer.
    """
    process, interpreter = _reach(pid)
    return _ask(process, interpreter, {"action": "detach"}, wait_s, say)


def _reach(pid: int) -> tuple[Process, Interpreter]:
    """Everything that can be found out before the process is touched.

    Raises:
        AttachError: it cannot be reached.
    """
    process = _read(pid)
    # First what is in the way of either method: without these rights nothing else can be read.
    _refuse_if_unreachable(process, "remote_exec")
    try:
        interpreter = find_interpreter(pid)
    except NotInjectable as error:
        raise AttachError(f"process {pid}: {error}", error.kind) from None
    _refuse_if_unreachable(process, interpreter.how)
    return process, interpreter


def _refuse_if_unreachable(
    process: Process, method: Literal["pending_call", "remote_exec"]
) -> None:
    obstacle = why_not_reachable(process, method=method)
    deadline_s = time.monotonic() + _TRACED_FOR_S
    # Another one who attaches traces it for a moment only; a debugger stays.
    while obstacle is not None and obstacle.kind == "traced" and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)
        process = _read(process.pid)
        obstacle = why_not_reachable(process, method=method)
    if obstacle is not None:
        fix = f"; {obstacle.fix}" if obstacle.fix else ""
        raise AttachError(f"process {process.pid}: {obstacle.reason}{fix}", obstacle.kind)


def _read(pid: int) -> Process:
    try:
        return read_process(pid)
    except NoSuchProcess as error:
        raise AttachError(str(error), "gone") from None


def _ask(
    process: Process, interpreter: Interpreter, question: dict[str, Any], wait_s: float, say: Say
) -> Outcome:
    files = {"arrive.py": Path(__file__).with_name("arrive.py").read_text(encoding="utf-8")}
    with Request(process, question, files) as request:
        arming = Arming(interpreter, process.ns_pid, request)
        try:
            injected = arming.arm(wait_s)
            # A process has one place for a script that waits, and another client may take it.
            arm_again = arming.arm if injected.method == "remote_exec" else None
            wait = Wait(process, interpreter, request, wait_s=wait_s, say=say, arm_again=arm_again)
            answer = wait.answer()
        finally:
            arming.take_back()
    if not answer.ok:
        raise AttachError(f"process {process.pid}: {answer.message}", "refused")
    return _outcome(process.pid, answer, injected)


def _outcome(pid: int, answer: Answer, injected: Injected) -> Outcome:
    return Outcome(
        pid=pid,
        ok=answer.ok,
        already=answer.already,
        run_id=answer.run_id,
        run_name=answer.run_name,
        rank=answer.rank,
        url=page_with_token(answer.url, read_local_server()),
        version=answer.version,
        message=answer.message,
        method=injected.method,
        stopped_us=injected.stopped_us,
    )
