"""Arming a line of Python by ``Py_AddPendingCall``, for Python 3.10 to 3.13.

``Py_AddPendingCall`` may be called at any moment, with or without the GIL; the interpreter runs
what is queued on its main thread, where it would handle a signal.
"""

from __future__ import annotations

import time
from typing import Final

from vramscope.injection.errors import InjectionError
from vramscope.injection.interpreter import CODE_BYTES, Interpreter
from vramscope.injection.landings import find_landings
from vramscope.injection.line_pages import LINE_BYTES, LinePages
from vramscope.injection.machine import Call, Machine
from vramscope.injection.machines import machine_named
from vramscope.injection.mappings import read_mappings
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import read_process_status
from vramscope.injection.stages import AtStage, no_stage
from vramscope.injection.stopped_thread import BadMoment, StoppedThread

_ATTEMPTS: Final = 20
_PAUSE_S: Final = 0.005
_INT_BITS: Final = (1 << 32) - 1
_FIRST_THAT_WAITS_WITHOUT_GIL: Final = (3, 13)


def arm_pending_call(interpreter: Interpreter, line: bytes, at_stage: AtStage = no_stage) -> float:
    """Queue a line for the main thread; how long that thread was stopped, in us.

    Raises:
        InjectionError: as :class:`StoppedThread` says, or ``busy`` if the queue is full.
    """
    if len(line) >= LINE_BYTES or b"\0" in line:
        raise ValueError(f"expected less than {LINE_BYTES} bytes without NUL, got {len(line)}")
    machine = machine_named(interpreter.machine)
    if machine is None:
        raise ValueError(f"expected a known machine, got {interpreter.machine}")
    try:
        with TargetMemory(interpreter.pid, writable=True) as memory:
            _check_program(interpreter, memory)
            return _arm(interpreter, line, memory, machine, at_stage)
    except PermissionError as error:
        raise InjectionError("its memory may not be written from here", "permission") from error
    except OSError as error:
        raise InjectionError("the process has ended", "gone") from error


def _check_program(interpreter: Interpreter, memory: TargetMemory) -> None:
    """Refuse a process that has got this number since, or has become another program."""
    function = interpreter.symbols["Py_AddPendingCall"].address
    if (
        read_process_status(interpreter.pid).started_ticks != interpreter.started_ticks
        or memory.read(function, CODE_BYTES) != interpreter.code
    ):
        raise InjectionError("the process has become another one", "gone")


def _arm(
    interpreter: Interpreter,
    line: bytes,
    memory: TargetMemory,
    machine: Machine,
    at_stage: AtStage,
) -> float:
    """Everything that takes long comes first, while the process runs."""
    mappings = read_mappings(interpreter.pid)
    landings = find_landings(memory, mappings, machine, interpreter.library)
    pages = LinePages(memory, machine, mappings)
    for _ in range(_ATTEMPTS):
        thread = StoppedThread(interpreter.pid, memory, machine, landings, at_stage)
        try:
            with thread:
                _queue(interpreter, thread, pages, line, at_stage)
            return thread.stopped_us
        except BadMoment:
            time.sleep(_PAUSE_S)
    raise InjectionError("the lock of its queue of pending calls was never free", "busy")


def _queue(
    interpreter: Interpreter,
    thread: StoppedThread,
    pages: LinePages,
    line: bytes,
    at_stage: AtStage,
) -> None:
    symbols = interpreter.symbols
    address = pages.put(thread, line)
    at_stage("written")
    call = Call(
        function=symbols["Py_AddPendingCall"].address,
        arguments=(symbols["PyRun_SimpleString"].address, address),
        result=pages.result,
        waits_at_once=interpreter.version < _FIRST_THAT_WAITS_WITHOUT_GIL,
    )
    # None: nothing here can tell the result, and it is hardly ever anything but success.
    result = thread.call(call)
    if result is not None and result & _INT_BITS:
        raise InjectionError("its queue of pending calls is full", "busy")
    pages.keep(thread)
