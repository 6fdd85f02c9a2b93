"""The main thread of a Python process, with everything prepared before it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from vramscope.injection.errors import InjectionError
from vramscope.injection.interpreter import CODE_BYTES, Interpreter
from vramscope.injection.landings import find_landings
from vramscope.injection.line_pages import LinePages
from vramscope.injection.machines import machine_named
from vramscope.injection.mappings import Mapping, read_mappings
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import name_of_process, read_process_status
from vramscope.injection.ptrace import ThreadGone
from vramscope.injection.stages import AtStage, no_stage
from vramscope.injection.stopped_thread import BadMoment, StoppedThread
from vramscope.injection.tracing_thread import run_as_tracer

_T = TypeVar("_T")

_ATTEMPTS: Final = 20
# Nothing else is mapped so close below the main thread's stack (mmap_base of the kernel).
_STACK_GROWTH_BYTES: Final = 64 << 20
_PAUSE_S: Final = 0.005
_TRACED_FOR_S: Final = 0.5
_ENDED_STATES: Final = frozenset("ZXx")


class MainThread:
    """What is known of a process before its main thread is stopped.

    Args:
        interpreter: of the process.
        memory: of the process, writable.
        at_stage: called at each stage.

    Attributes:
        pages: for lines and results.
        stopped_us: how long the last stop lasted, in us.

    Raises:
        InjectionError: ``gone``, or ``failed`` for a C library of an unknown make.
        OSError: the process has ended.
    """

    def __init__(self, interpreter: Interpreter, memory: TargetMemory, at_stage: AtStage) -> None:
        machine = machine_named(interpreter.machine)
        if machine is None:
            raise ValueError(f"expected a known machine, got {interpreter.machine}")
        self.interpreter = interpreter
        self.memory = memory
        self.machine = machine
        self.at_stage = at_stage
        self.stopped_us = 0.0
        self._check_program()
        mappings = read_mappings(interpreter.pid)
        self._landings = find_landings(memory, mappings, machine, interpreter.library)
        self.pages = LinePages(memory, machine, mappings)
        self._stack = stack_of(mappings)

    def stop_for(self, work: Callable[[StoppedThread], _T]) -> _T:
        """Do something with the thread stopped; again where the moment was a bad one.

        Raises:
            InjectionError: as :class:`StoppedThread` says, or ``busy``.
        """
        attempt = 0
        while True:
            attempt += 1
            thread = StoppedThread(
                self.interpreter.pid,
                self.memory,
                self.machine,
                self._landings,
                self.at_stage,
                self._stack,
            )
            try:
                with thread:
                    result = work(thread)
            except BadMoment as moment:
                if attempt == _ATTEMPTS:
                    raise moment.lasting from moment
                time.sleep(_PAUSE_S)
                # Another one was faster, and may lose the processor while it traces.
                _wait_for_other_tracer(self.interpreter.pid)
            else:
                self.stopped_us = thread.stopped_us
                return result

    def _check_program(self) -> None:
        """Refuse a process that has got this number since, or has become another program."""
        known = self.interpreter
        function = known.symbols["Py_AddPendingCall"].address
        if (
            read_process_status(known.pid).started_ticks != known.started_ticks
            or self.memory.read(function, CODE_BYTES) != known.code
        ):
            raise InjectionError("the process has become another one", "gone")


def stack_of(mappings: Iterable[Mapping]) -> range | None:
    """Addresses of the main thread's stack, with those that it may still grow to."""
    for mapping in mappings:
        if mapping.path == "[stack]":
            return range(mapping.start - _STACK_GROWTH_BYTES, mapping.end)
    return None


def with_main_thread(
    interpreter: Interpreter, work: Callable[[MainThread], _T], at_stage: AtStage = no_stage
) -> _T:
    """Prepare everything, and let ``work`` stop the main thread; on a thread of its own.

    Raises:
        InjectionError: ``permission``, ``traced``, ``gone``, ``busy`` (not reached for a
            moment) and what ``work`` raises.
    """
    _wait_for_other_tracer(interpreter.pid)

    def reach() -> _T:
        try:
            with TargetMemory(interpreter.pid, writable=True) as memory:
                return work(MainThread(interpreter, memory, at_stage))
        except PermissionError as error:
            raise InjectionError("its memory may not be written from here", "permission") from error
        except (OSError, ThreadGone) as error:
            raise _lost(interpreter, error) from error

    return run_as_tracer(reach)


def _lost(interpreter: Interpreter, error: OSError | ThreadGone) -> InjectionError:
    """Why something of the process was not there: it has ended, or only that has gone.

    A process under way maps and unmaps memory between the moment at which a list of it is read and
    that at which it is looked at. Of one that goes on it is not said that it has ended: whoever
    asks again finds it.
    """
    try:
        status = read_process_status(interpreter.pid)
    except OSError:
        return InjectionError("the process has ended", "gone")
    if status.started_ticks != interpreter.started_ticks or status.state in _ENDED_STATES:
        return InjectionError("the process has ended", "gone")
    return InjectionError(f"it could not be reached just now ({error})", "busy")


def _wait_for_other_tracer(pid: int) -> None:
    """Let another one who attaches just now finish; refuse a debugger."""
    deadline_s = time.monotonic() + _TRACED_FOR_S
    while True:
        try:
            tracer = read_process_status(pid).tracer
        except OSError as error:
            raise InjectionError("the process has ended", "gone") from error
        if not tracer:
            return
        if time.monotonic() > deadline_s:
            name = name_of_process(tracer) or "another program"
            raise InjectionError(f"it is being traced by {name} (PID {tracer})", "traced")
        time.sleep(_PAUSE_S)
