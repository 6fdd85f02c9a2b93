"""The Python stack of a main thread that is blocked: it writes it itself, as faulthandler does.

``_Py_DumpTraceback`` is made for signal handlers: it allocates nothing and takes no lock. Not
every build exports it; where the file still has its table of symbols, it is found there.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from vramscope.injection.elf import ElfImage, NotElf
from vramscope.injection.interpreter import Interpreter
from vramscope.injection.machine import Call
from vramscope.injection.main_thread import MainThread, with_main_thread
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import read_process_status
from vramscope.injection.stopped_thread import StoppedThread

_DUMP: Final = "_Py_DumpTraceback"
_THREAD_STATE: Final = "PyGILState_GetThisThreadState"
_CLOSE_ON_EXEC: Final = 1
_LARGEST_TEXT: Final = 256 << 10
_FOLDERS: Final = (b"/dev/shm", b"/tmp")
_UNNAMED: Final = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC
_AT_CWD, _PRIVATE = -100, 0o600
# Holds the build id, and so tells one build from another.
_HEAD_BYTES: Final = 4096


def dump_main_thread(interpreter: Interpreter) -> str | None:
    """The Python stack of the main thread, innermost call first, also while it is blocked in C.

    The thread is stopped for some ms. A system call in which it waits goes on afterwards.

    Returns:
        Text as of faulthandler; None where this build of Python, or the process, offers no way.

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
    try:
        with TargetMemory(interpreter.pid) as memory:
            return _find_in_file(memory, interpreter)
    except (OSError, NotElf):
        return 0


def _find_in_file(memory: TargetMemory, interpreter: Interpreter) -> int:
    path = f"/proc/{interpreter.pid}/root{interpreter.library}"
    # Whoever owns the process may have put anything there since.
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        head = memory.read(interpreter.start, _HEAD_BYTES)
        if not stat.S_ISREG(os.fstat(file).st_mode) or os.pread(file, _HEAD_BYTES, 0) != head:
            return 0
        found = ElfImage(memory, interpreter.start).find_in_file(file, _DUMP)
    finally:
        os.close(file)
    return found.address if found is not None else 0


def _open_file(main: MainThread, thread: StoppedThread) -> int:
    """A file of the process without a name; negative if it gets none.

    A filter of system calls may kill a process for one that it never makes: it opens files for
    sure, but creates none in memory.
    """
    machine = main.machine
    if not read_process_status(main.interpreter.pid).filtered:
        name = main.pages.write_text(thread, b"vramscope stack")
        return thread.system_call(machine.number_of_memfd_create, (name, _CLOSE_ON_EXEC))
    file = -1
    for folder in _FOLDERS:
        arguments = (_AT_CWD, main.pages.write_text(thread, folder), _UNNAMED, _PRIVATE)
        file = thread.system_call(machine.number_of_openat, arguments)
        if file >= 0:
            break
    return file


def _dump(main: MainThread, thread: StoppedThread, functions: tuple[int, int]) -> str | None:
    state_of_thread, dump = functions
    main.pages.map(thread)
    state = thread.call(Call(state_of_thread, (), result=main.pages.result))
    if not state:
        return None  # The main thread runs no Python, or the result cannot be told.
    file = _open_file(main, thread)
    if file < 0:
        return None
    try:
        thread.call(Call(dump, (file, state)))
        with open(f"/proc/{main.interpreter.pid}/fd/{file}", "rb") as written:
            text = written.read(_LARGEST_TEXT)
    finally:
        thread.system_call(main.machine.number_of_close, (file,))
    return text.decode("utf-8", "backslashreplace")
