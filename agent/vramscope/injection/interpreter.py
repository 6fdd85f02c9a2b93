"""Finding the CPython in a process, without stopping or changing anything."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from vramscope.injection.elf import ElfImage, NotElf, Symbol
from vramscope.injection.errors import NotInjectable
from vramscope.injection.machines import machine_named
from vramscope.injection.mappings import Mapping, read_mappings
from vramscope.injection.memory import TargetMemory
from vramscope.injection.process_status import ProcessStatus, read_process_status
from vramscope.injection.remote_debugging import why_switched_off

OLDEST: Final = (3, 10)
FIRST_WITH_REMOTE_EXEC: Final = (3, 14)
CODE_BYTES: Final = 16
"""How much of ``Py_AddPendingCall`` is kept, to know the program again."""

_NEEDED: Final = ("Py_AddPendingCall", "PyRun_SimpleString")
_WELCOME: Final = ("PyGILState_GetThisThreadState", "_Py_DumpTraceback", "_PyRuntime")
_VERSION_IN_NAME: Final = re.compile(r"python(3)\.(\d+)")


@dataclass(frozen=True)
class Interpreter:
    """A CPython in a running process, and where its functions lie.

    Attributes:
        pid: of the process, as seen from here.
        started_ticks: field 22 of /proc/PID/stat; with the pid it names one process for good.
        version: major and minor.
        library: path, as the process sees it, of the file that holds Python.
        start: address at which that file is mapped.
        machine: ``uname -m`` of the process.
        symbols: what was found among the exported symbols.
        code: first bytes of ``Py_AddPendingCall``.
    """

    pid: int
    started_ticks: int
    version: tuple[int, int]
    library: str
    start: int
    machine: str
    symbols: dict[str, Symbol]
    code: bytes

    @property
    def how(self) -> Literal["pending_call", "remote_exec"]:
        """The way in which a line is armed in it."""
        return "remote_exec" if self.version >= FIRST_WITH_REMOTE_EXEC else "pending_call"


def find_interpreter(pid: int) -> Interpreter:
    """The interpreter of a process into which a line can be put.

    Raises:
        NotInjectable: why it can't; see there for the kinds.
    """
    try:
        status = read_process_status(pid)
        if status.state in "ZX":
            raise NotInjectable("its main thread has ended", "gone")
        with TargetMemory(pid) as memory:
            found = _find(memory, status, read_mappings(pid))
    except (FileNotFoundError, ProcessLookupError) as error:
        raise NotInjectable(f"there is no process {pid}", "gone") from error
    except PermissionError as error:
        raise NotInjectable("its memory may not be read from here", "permission") from error
    except OSError as error:
        raise NotInjectable(f"it has ended or has become another program ({error})", "gone") from (
            error
        )
    _check_way(found, status)
    return found


def _find(memory: TargetMemory, status: ProcessStatus, mappings: list[Mapping]) -> Interpreter:
    named = ""
    for mapping in _candidates(mappings, status.executable):
        try:
            image = ElfImage(memory, mapping.start)
        except NotElf:
            _refuse_32_bit(memory, mapping)
            continue
        symbols = {
            name: symbol
            for name in (*_NEEDED, *_WELCOME, "Py_Version")
            if (symbol := image.find(name)) is not None
        }
        if all(name in symbols for name in _NEEDED):
            _refuse_other_machine(image.machine)
            return Interpreter(
                pid=status.pid,
                started_ticks=status.started_ticks,
                version=_version(memory, mapping, mappings, symbols),
                library=mapping.path,
                start=mapping.start,
                machine=image.machine,
                symbols=symbols,
                code=memory.read(symbols["Py_AddPendingCall"].address, CODE_BYTES),
            )
        if "python" in mapping.name:
            named = mapping.name
    if any("pypy" in mapping.name for mapping in mappings):
        raise NotInjectable("it runs PyPy, not CPython", "not_cpython")
    if named:
        raise NotInjectable(f"{named} exports no Py_AddPendingCall (stripped?)", "symbols")
    raise NotInjectable("it is not a Python process", "not_python")


def _candidates(mappings: list[Mapping], executable: str) -> Iterator[Mapping]:
    """Starts of the files that may hold Python: shared libraries of it first."""
    starts = [mapping for mapping in mappings if mapping.offset == 0 and mapping.path[:1] == "/"]
    yield from (mapping for mapping in starts if mapping.name.startswith("libpython3"))
    yield from (mapping for mapping in starts if mapping.path == executable)


def _version(
    memory: TargetMemory, mapping: Mapping, mappings: list[Mapping], symbols: dict[str, Symbol]
) -> tuple[int, int]:
    known = symbols.get("Py_Version")
    if known is not None:
        number = int.from_bytes(memory.read(known.address, 4), "little")
        return number >> 24, number >> 16 & 0xFF
    # Before 3.11 only names tell it: of the file itself, or of a folder of its library.
    for path in (mapping.name, *(other.path for other in mappings)):
        found = _VERSION_IN_NAME.search(path)
        if found:
            return int(found[1]), int(found[2])
    raise NotInjectable("the version of its Python is not known (older than 3.11)", "version")


def _refuse_32_bit(memory: TargetMemory, mapping: Mapping) -> None:
    if memory.read(mapping.start, 5) == b"\x7fELF\x01":
        raise NotInjectable("it is a 32-bit program", "architecture")


def _refuse_other_machine(machine: str) -> None:
    here = os.uname().machine
    if machine != here or machine_named(machine) is None:
        raise NotInjectable(f"it is a program for {machine}, on {here}", "architecture")


def _check_way(interpreter: Interpreter, status: ProcessStatus) -> None:
    if interpreter.version < OLDEST:
        version = ".".join(map(str, interpreter.version))
        raise NotInjectable(f"it runs Python {version}; 3.10 is the oldest", "version")
    if interpreter.how == "remote_exec":
        reason = why_switched_off(interpreter.pid)
        if reason is not None:
            raise NotInjectable(reason, "disabled")
    elif status.shadow_stack:
        raise NotInjectable("its threads have shadow stacks", "shadow_stack")
