"""Symbols of a program or library that a process has mapped.

The exported ones (.dynsym) are read out of the process's own memory, where the loader needs them
too: no file has to exist any more or be readable from here. Only .symtab, which is not mapped, is
read from the file. Layouts: elf(5); the hash table of DT_GNU_HASH as in glibc's loader.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vramscope.injection.memory import TargetMemory

MACHINES: Final = {62: "x86_64", 183: "aarch64"}
"""Names (as ``uname -m`` says) of the values of e_machine that matter here."""

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER: Final = struct.Struct("<IIQQQQQQ")
_SECTION_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_STRTAB, _DT_SYMTAB, _DT_GNU_HASH = 5, 6, 0x6FFFFEF5
_SHT_SYMTAB: Final = 2
# More than these only a hostile process claims to have.
_MOST_SYMBOLS: Final = 1 << 20
_LARGEST_FILE: Final = 1 << 30


class NotElf(Exception):
    """Not a 64-bit little-endian ELF image with the tables that are needed."""


@dataclass(frozen=True)
class Symbol:
    """Where something lies: an address in the process, and its size in bytes."""

    address: int
    size: int


@dataclass(frozen=True)
class _Header:
    machine: int
    programs: tuple[int, int]
    sections: tuple[int, int]


class ElfImage:
    """A mapped ELF file.

    Args:
        memory: of the process.
        start: where the file's first byte is mapped.

    Raises:
        NotElf: something else is mapped there.
        OSError: the memory cannot be read.
    """

    def __init__(self, memory: TargetMemory, start: int) -> None:
        self._memory = memory
        header = _parse_header(memory.read(start, _HEADER.size))
        self.machine = MACHINES.get(header.machine, f"machine {header.machine}")
        offset, count = header.programs
        table = memory.read(start + offset, count * _PROGRAM_HEADER.size)
        programs = list(_PROGRAM_HEADER.iter_unpack(table))
        first = [p for p in programs if p[0] == _PT_LOAD and p[2] == 0]
        dynamic = [p for p in programs if p[0] == _PT_DYNAMIC]
        if not first or not dynamic:
            raise NotElf("it has no dynamic section")
        self.base = start - first[0][3]
        """What is added to the addresses in the file."""
        self._dynamic = self._read_dynamic(dynamic[0][3], dynamic[0][6])

    def find(self, name: str) -> Symbol | None:
        """An exported symbol, or None."""
        table = self._dynamic.get(_DT_GNU_HASH)
        if table is None:
            return None
        buckets, first, bloom_words, _ = struct.unpack("<IIII", self._memory.read(table, 16))
        bucket_table = table + 16 + 8 * bloom_words
        wanted = _gnu_hash(name.encode())
        start = self._word(bucket_table + 4 * (wanted % buckets)) if buckets else 0
        if start < first:
            return None
        for number in range(start, start + _MOST_SYMBOLS):
            chained = self._word(bucket_table + 4 * buckets + 4 * (number - first))
            if chained | 1 == wanted | 1:
                symbol = self._symbol(number, name.encode())
                if symbol is not None:
                    return symbol
            if chained & 1:
                break
        return None

    def find_in_file(self, descriptor: int, name: str) -> Symbol | None:
        """A symbol that is not exported, from the .symtab of the same file (None: stripped).

        Raises:
            NotElf: it is no ELF file.
            OSError: it cannot be read.
        """
        try:
            found = _find_in_symbol_table(_reader(descriptor), name.encode())
        except struct.error:
            return None  # It ends where something is said to be.
        return found and Symbol(self.base + found.address, found.size)

    def _read_dynamic(self, address: int, size: int) -> dict[int, int]:
        entries: dict[int, int] = {}
        table = self._memory.read(self.base + address, size & ~15)
        for tag, value in struct.iter_unpack("<QQ", table):
            if tag == 0:
                break
            # glibc has put the base in already; musl and the vdso leave the file's own values.
            entries[tag] = value if value >= self.base else self.base + value
        if _DT_SYMTAB not in entries or _DT_STRTAB not in entries:
            raise NotElf("it has no symbols")
        return entries

    def _symbol(self, number: int, name: bytes) -> Symbol | None:
        entry = self._memory.read(self._dynamic[_DT_SYMTAB] + number * _SYMBOL.size, _SYMBOL.size)
        text, _, _, section, value, size = _SYMBOL.unpack(entry)
        if not section or self._memory.read_text(self._dynamic[_DT_STRTAB] + text) != name:
            return None
        return Symbol(self.base + value, size)

    def _word(self, address: int) -> int:
        return int.from_bytes(self._memory.read(address, 4), "little")


def _parse_header(content: bytes) -> _Header:
    if len(content) < _HEADER.size or content[:4] != b"\x7fELF" or content[4:6] != b"\x02\x01":
        raise NotElf("it is no 64-bit little-endian ELF file")
    fields = _HEADER.unpack_from(content)
    return _Header(fields[2], programs=(fields[5], fields[10]), sections=(fields[6], fields[12]))


def _gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def _find_in_symbol_table(read: Callable[[int, int], bytes], name: bytes) -> Symbol | None:
    offset, count = _parse_header(read(0, _HEADER.size)).sections
    table = read(offset, count * _SECTION_HEADER.size)
    sections: list[tuple[int, ...]] = list(_SECTION_HEADER.iter_unpack(table))
    for section in sections:
        if section[1] != _SHT_SYMTAB or section[6] >= len(sections):
            continue
        names = read(*sections[section[6]][4:6])
        # A name may be the tail of a longer one, so every place where it stands counts.
        places: set[int] = set()
        place = names.find(name + b"\0")
        while place >= 0:
            places.add(place)
            place = names.find(name + b"\0", place + 1)
        for text, _, _, home, value, size in _SYMBOL.iter_unpack(read(section[4], section[5])):
            if home and text in places:
                return Symbol(value, size)
    return None


def _reader(descriptor: int) -> Callable[[int, int], bytes]:
    def read(offset: int, size: int) -> bytes:
        if max(offset, size) > _LARGEST_FILE:
            raise NotElf("it says that it is larger than any program")
        return os.pread(descriptor, size, offset)

    return read
