"""The Python stack of a main thread that is blocked: it writes it itself, as faulthandler does.

``_Py_DumpTraceback`` is made for signal handlers: it allocates nothing and takes no lock. Not
every build exports it; where the file still has its table of symbols, it is found there.
"""

from __future__ import annotations

import os
from typing import Final

from vramscope.injection.elf import ElfImage, NotElf
from vramscope.injection.errors import InjectionError
from vramscope.injection.interpreter import Interpreter
from vramscope.injection.machine import Call
from vramscope.injection.main_thread import MainThread, with_main_thread
from vramscope.injection.memory import TargetMemory
from vramscope.injection.stopped_thread import StoppedThread

_DUMP: Final = "_Py_DumpTraceback"
_THREAD_STATE: Final = "PyGILState_GetThisThreadState"
_CLOSE_ON_EXEC: Final = 1
_LARGEST_TEXT: Final = 256 << 10
# Holds the build id, and so tells one build from another.
_HEAD_BYTES: Final = 4096


def dump_main_thread(interpreter: Interpreter) -> str | None:
    """The Python stack of the main thread, innermost call first, also while it is blocked in C.

    The thread is stopped for some ms. A system call in which it waits goes on afterwards.

    Returns:
        Text as of faulthandler; None where this build of Python offers no way.

    Raises:
        InjectionError: as for :func:`inject`.
    """
    dump = _find_dump(interpreter)
    state = interpreter.symbols.get(_THREAD_STATE)
    if not dump or state is None:
        return None
    functions = (state.address, dump)
    return with_main_thread(
        interpreter, lambda main: main.stop_for(lambda thread: _dump(main, thread, functions))
    )


def _find_dump(interpreter: Interpreter) -> int:
    """Address of the function, 0 if it is not to be found."""
    exported = interpreter.symbols.get(_DUMP)
    if exported is not None:
        return exported.address
    path = f"/proc/{interpreter.pid}/root{interpreter.library}"
    try:
        with TargetMemory(interpreter.pid) as memory, open(path, "rb") as file:
            if file.read(_HEAD_BYTES) != memory.read(interpreter.start, _HEAD_BYTES):
                return 0  # Another version has been installed since.
            found = ElfImage(memory, interpreter.start).find_in_file(file.fileno(), _DUMP)
    except (OSError, NotElf):
        return 0
    return found.address if found is not None else 0


def _dump(main: MainThread, thread: StoppedThread, functions: tuple[int, int]) -> str | None:
    state_of_thread, dump = functions
    name = main.pages.map(thread)
    state = thread.call(Call(state_of_thread, (), result=main.pages.result))
    if not state:
        return None  # The main thread runs no Python, or the result cannot be told.
    file = thread.system_call(main.machine.number_of_memfd_create, (name, _CLOSE_ON_EXEC))
    if file < 0:
        raise InjectionError(f"it can open no file ({os.strerror(-file)})", "failed")
    try:
        thread.call(Call(dump, (file, state)))
        with open(f"/proc/{main.interpreter.pid}/fd/{file}", "rb") as written:
            text = written.read(_LARGEST_TEXT)
    finally:
        thread.system_call(main.machine.number_of_close, (file,))
    return text.decode("utf-8", "backslashreplace")
