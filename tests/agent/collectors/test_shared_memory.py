"""Shared memory: the file system, and PyTorch's files in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vramscope.collectors import shared_memory
from vramscope.collectors.shared_memory import SharedMemoryFiles, SharedMemoryReader
from vramscope_protocol.columns import UNKNOWN


def test_the_file_system_and_pytorchs_files(tmp_path: Path) -> None:
    (tmp_path / "torch_17_1_0").write_bytes(b"x" * 10_000)
    (tmp_path / "sem.other").write_bytes(b"x" * 50_000)
    files = SharedMemoryReader(folder=str(tmp_path)).read()
    system = os.statvfs(tmp_path)
    assert files.size_bytes == system.f_blocks * system.f_frsize
    assert 0 < files.used_bytes <= files.size_bytes
    assert 10_000 <= files.torch_bytes < 50_000


def test_a_link_counts_as_a_link(tmp_path: Path) -> None:
    (tmp_path / "torch_17_1_0").symlink_to(__file__)
    assert SharedMemoryReader(folder=str(tmp_path)).read().torch_bytes < 4096 * 2


def test_files_of_somebody_else_are_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch_17_1_0").write_bytes(b"x" * 10_000)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert SharedMemoryReader(folder=str(tmp_path)).read().torch_bytes == 0


def test_too_many_files_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_MAX_ENTRIES", 1)
    (tmp_path / "torch_1").touch()
    (tmp_path / "torch_2").touch()
    files = SharedMemoryReader(folder=str(tmp_path)).read()
    assert files.torch_bytes == UNKNOWN
    assert files.size_bytes > 0


def test_without_such_a_file_system_all_is_unknown(tmp_path: Path) -> None:
    files = SharedMemoryReader(folder=str(tmp_path / "none")).read()
    assert files == SharedMemoryFiles(UNKNOWN, UNKNOWN, UNKNOWN)
