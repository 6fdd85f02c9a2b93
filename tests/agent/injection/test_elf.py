"""Symbols are where the loader and the linker say they are."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from vramscope.injection.elf import ElfImage, NotElf
from vramscope.injection.mappings import read_mappings
from vramscope.injection.memory import TargetMemory

NAMES = ("Py_AddPendingCall", "PyRun_SimpleString", "PyGILState_GetThisThreadState")


def python_image(memory: TargetMemory) -> ElfImage:
    """The file with this process's own Python."""
    for mapping in read_mappings(os.getpid()):
        if mapping.offset == 0 and mapping.path.startswith("/") and "python3" in mapping.name:
            image = ElfImage(memory, mapping.start)
            if image.find("Py_AddPendingCall"):
                return image
    raise AssertionError("no Python in this process")


@pytest.mark.parametrize("name", NAMES)
def test_exported_symbols_lie_where_the_loader_says(name: str) -> None:
    expected = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    with TargetMemory(os.getpid()) as memory:
        found = python_image(memory).find(name)
    assert found is not None
    assert (found.address, found.size > 0) == (expected, True)


@pytest.mark.parametrize("name", ["Py_AddPendingCal", "Py_AddPendingCallX", "", "no such thing"])
def test_what_is_not_exported_is_not_found(name: str) -> None:
    with TargetMemory(os.getpid()) as memory:
        assert python_image(memory).find(name) is None


def test_the_table_of_an_unstripped_file_agrees() -> None:
    with TargetMemory(os.getpid()) as memory:
        image = python_image(memory)
        path = next(m.path for m in read_mappings(os.getpid()) if m.start == image.base)
        with open(path, "rb") as file:
            found = image.find_in_file(file.fileno(), "Py_AddPendingCall")
            missing = image.find_in_file(file.fileno(), "no such thing")
        if found is None:
            pytest.skip(f"{path} is stripped")
        assert (found, missing) == (image.find("Py_AddPendingCall"), None)


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n"])
def test_a_file_that_is_none_is_said_to_be_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with TargetMemory(os.getpid()) as memory, open(path, "rb") as file, pytest.raises(NotElf):
        python_image(memory).find_in_file(file.fileno(), "main")


def test_a_file_that_ends_too_early_has_no_symbols(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with TargetMemory(os.getpid()) as memory:
        whole = Path(f"/proc/{os.getpid()}/exe").read_bytes()
        for size in (64, len(whole) // 2):
            path.write_bytes(whole[:size])
            with open(path, "rb") as file:
                assert python_image(memory).find_in_file(file.fileno(), "main") is None


def test_what_is_mapped_and_no_elf_file() -> None:
    content = ctypes.create_string_buffer(b"nothing of the kind", 256)
    with TargetMemory(os.getpid()) as memory, pytest.raises(NotElf):
        ElfImage(memory, ctypes.addressof(content))


def test_machine_is_ours() -> None:
    with TargetMemory(os.getpid()) as memory:
        assert python_image(memory).machine == os.uname().machine
