"""Arming a line of Python by ``Py_AddPendingCall``, for Python 3.10 to 3.13.

``Py_AddPendingCall`` may be called at any moment, with or without the GIL; the interpreter runs
what is queued on its main thread, where it would handle a signal.
"""

from __future__ import annotations

from typing import Final

from vramscope.injection.errors import InjectionError
from vramscope.injection.interpreter import Interpreter
from vramscope.injection.line_pages import LINE_BYTES
from vramscope.injection.machine import Call
from vramscope.injection.main_thread import MainThread, with_main_thread
from vramscope.injection.queue_lock import FIRST_WITH_MUTEX, find_queue_lock, is_locked
from vramscope.injection.queue_semaphores import QueueSemaphores
from vramscope.injection.stages import AtStage, no_stage
from vramscope.injection.stopped_thread import BadMoment, StoppedThread

_INT_BITS: Final = (1 << 32) - 1


def arm_pending_call(interpreter: Interpreter, line: bytes, at_stage: AtStage = no_stage) -> float:
    """Queue a line for the main thread; how long that thread was stopped, in us.

    Raises:
        InjectionError: as :func:`with_main_thread` says, or ``busy`` if the queue is full.
        ValueError: the line is too long or holds a NUL.
    """
    if len(line) >= LINE_BYTES or b"\0" in line:
        raise ValueError(f"expected less than {LINE_BYTES} bytes without NUL, got {len(line)}")

    def arm(main: MainThread) -> float:
        mutex = find_queue_lock(main.memory, interpreter)
        semaphores = QueueSemaphores(main.memory, interpreter)

        def queue(thread: StoppedThread) -> None:
            if is_locked(main.memory, mutex) or semaphores.are_held():
                raise BadMoment("the lock of its queue of pending calls is never free")
            _queue(main, thread, line)

        main.stop_for(queue)
        return main.stopped_us

    return with_main_thread(interpreter, arm, at_stage)


def _queue(main: MainThread, thread: StoppedThread, line: bytes) -> None:
    symbols = main.interpreter.symbols
    address = main.pages.put(thread, line)
    main.at_stage("written")
    call = Call(
        function=symbols["Py_AddPendingCall"].address,
        arguments=(symbols["PyRun_SimpleString"].address, address),
        result=main.pages.result,
        waits_at_once=main.interpreter.version < FIRST_WITH_MUTEX,
    )
    try:
        result = thread.call(call)
    except BadMoment:
        main.pages.take_back(thread)
        raise
    # None: nothing here can tell the result, and it is hardly ever anything but success.
    if result is not None and result & _INT_BITS:
        main.pages.take_back(thread)
        raise InjectionError("its queue of pending calls is full", "busy")
