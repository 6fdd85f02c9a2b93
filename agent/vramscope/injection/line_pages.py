"""The few pages in a process that hold the lines armed in it, shared by all that ever reach in.

A line must stay where it is until the process has read it, and nobody says when that is. The
process's queue of pending calls holds 32 at most, in order, so a place is free again after more
lines than that: the pages are mapped once and used in turn, however often one attaches.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from vramscope.injection.errors import InjectionError
from vramscope.injection.machine import Machine
from vramscope.injection.mappings import Mapping
from vramscope.injection.memory import TargetMemory
from vramscope.injection.stopped_thread import StoppedThread

LINE_BYTES: Final = 1024
"""Room for one line with its NUL."""

PLACES: Final = 127
_SIZE: Final = LINE_BYTES * (1 + PLACES)
# Mark, number of lines so far, result of the last call.
_HEADER: Final = struct.Struct("<16sQ")
_MARK: Final = b"vramscope lines\0"
_RESULT_OFFSET: Final = _HEADER.size
_TEXT_OFFSET: Final = 64

_PROT_READ_WRITE: Final = 1 | 2
_MAP_PRIVATE_ANONYMOUS_AT = 0x02 | 0x20 | 0x100000  # MAP_FIXED_NOREPLACE: Linux 4.17


class LinePages:
    """The pages of one process.

    Args:
        memory: of the process.
        machine: its processor.
        mappings: of the process, read before it is stopped.
    """

    def __init__(self, memory: TargetMemory, machine: Machine, mappings: Iterable[Mapping]) -> None:
        self._memory = memory
        self._machine = machine
        mapped = {mapping.start: mapping for mapping in mappings}
        self._address = next(
            (place for place in machine.page_places if self._is_ours(mapped.get(place))), 0
        )
        self._number = 0

    @property
    def result(self) -> int:
        """Address of 8 bytes for the result of a call."""
        return self._address + _RESULT_OFFSET

    def map(self, thread: StoppedThread) -> int:
        """See to it that the pages are there; their address.

        Raises:
            InjectionError: ``memory``, if the process gets none.
        """
        if not self._address:
            self._address = self._map(thread)
        mark, self._number = _HEADER.unpack(self._memory.read(self._address, _HEADER.size))
        if mark != _MARK:
            self._number = 0
            thread.write(self._address, _HEADER.pack(_MARK, 0))
        return self._address

    def write_text(self, thread: StoppedThread, text: bytes) -> int:
        """Write a short text for one system call, and give its address.

        Raises:
            InjectionError: ``memory``, if the process gets none.
        """
        address = self.map(thread) + _TEXT_OFFSET
        thread.write(address, text[: LINE_BYTES - _TEXT_OFFSET - 1] + b"\0")
        return address

    def put(self, thread: StoppedThread, line: bytes) -> int:
        """Write a line and give its address.

        Its place is taken before that, so that nobody writes into a line that is still to be read,
        whoever dies now.

        Raises:
            InjectionError: ``memory``, if the process gets none.
        """
        address = self.map(thread) + LINE_BYTES * (1 + self._number % PLACES)
        thread.write(self._address, _HEADER.pack(_MARK, self._number + 1))
        thread.write(address, line + b"\0")
        return address

    def take_back(self, thread: StoppedThread) -> None:
        """Free the place of the line that was put last: nobody will read it."""
        thread.write(self._address, _HEADER.pack(_MARK, self._number))

    def _is_ours(self, mapping: Mapping | None) -> bool:
        if mapping is None or mapping.path or mapping.permissions != "rw-p":
            return False
        # All zeros: whoever mapped it has died before the mark was written.
        mark = self._memory.read(mapping.start, len(_MARK))
        return mapping.end - mapping.start == _SIZE and mark in (_MARK, bytes(len(_MARK)))

    def _map(self, thread: StoppedThread) -> int:
        for place in self._machine.page_places:
            arguments = (place, _SIZE, _PROT_READ_WRITE, _MAP_PRIVATE_ANONYMOUS_AT, -1, 0)
            address = thread.system_call(self._machine.number_of_mmap, arguments)
            if address > 0:
                return address
        raise InjectionError("it gets no memory for the line", "memory")
