"""Memory of a process is read and written completely, or not at all."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from vramscope.injection.memory import TargetMemory


def test_read_and_write() -> None:
    content = ctypes.create_string_buffer(b"as it was\0rest")
    address = ctypes.addressof(content)
    with TargetMemory(os.getpid(), writable=True) as memory:
        assert memory.read(address, 9) == b"as it was"
        assert memory.read_text(address) == b"as it was"
        memory.write(address, b"is changed")
    assert content.raw.startswith(b"is changedrest")


def test_what_is_not_mapped_to_its_end_is_an_error() -> None:
    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as pages:
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    with TargetMemory(os.getpid(), writable=True) as memory:
        with pytest.raises(OSError, match=r"."):
            memory.read(address, 16)
        with pytest.raises(OSError, match=r"."):
            memory.write(address, b"nothing")


def test_a_process_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        TargetMemory(2**22 + 1)


@pytest.mark.parametrize(("address", "size"), [(4096, 1 << 63), (4096, 1 << 40), (1 << 63, 8)])
def test_numbers_of_a_hostile_process_are_refused(address: int, size: int) -> None:
    # It may map what looks like a library of Python: who lists all processes must get over it.
    with TargetMemory(os.getpid()) as memory, pytest.raises(OSError, match="nothing of"):
        memory.read(address, size)
    with TargetMemory(os.getpid()) as memory, pytest.raises(OSError, match=r"."):
        memory.read_text(address - address % (1 << 63))
