"""Finding the instructions that a stopped thread is made to jump to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from vramscope.injection.errors import InjectionError
from vramscope.injection.machine import Landings, Machine
from vramscope.injection.mappings import Mapping
from vramscope.injection.memory import TargetMemory

_C_LIBRARIES: Final = ("libc.so", "libc-", "libc.musl", "ld-musl", "ld-linux", "libpthread")
_LARGEST_PART: Final = 64 << 20


def find_landings(
    memory: TargetMemory, mappings: Iterable[Mapping], machine: Machine, library: str
) -> Landings:
    """Places in the C library, the kernel's vdso or Python that hold the wanted instructions.

    Args:
        memory: of the process.
        mappings: of the process.
        machine: its processor.
        library: path of the file that holds Python.

    Raises:
        InjectionError: ``failed``, if the C library is of an unknown make.
    """
    parts = [
        (mapping.start, memory.read(mapping.start, min(mapping.end - mapping.start, _LARGEST_PART)))
        for mapping in sorted(mappings, key=lambda mapping: _rank(mapping, library))
        if mapping.executable and _rank(mapping, library) < _OTHERS
    ]
    restorer = _find(parts, machine.restorer_code)
    system_call = _find(parts, machine.system_call_code)
    if not restorer or not system_call:
        raise InjectionError("its C library is of a kind that is not known", "failed")
    return Landings(restorer, system_call, _find(parts, machine.store_result_code))


_OTHERS: Final = 3


def _rank(mapping: Mapping, library: str) -> int:
    if mapping.name.startswith(_C_LIBRARIES):
        return 0
    if mapping.path == "[vdso]":
        return 1
    return 2 if mapping.path == library else _OTHERS


def _find(parts: Sequence[tuple[int, bytes]], codes: Sequence[bytes]) -> int:
    """Address of the first of these instructions, 0 if there are none."""
    for code in codes:
        for start, content in parts:
            place = content.find(code)
            if place >= 0:
                return start + place
    return 0
