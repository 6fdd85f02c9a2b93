"""What is read from the list of a process's mappings."""

from __future__ import annotations

import mmap
import os
import subprocess
from pathlib import Path

import pytest

from vramscope.processes.memory_map import parse_memory_map, read_memory_map
from vramscope.processes.proc_files import NoSuchProcess

MAPS = b"""\
00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/python3.11
7f00a0000000-7f00a0021000 rw-p 00000000 00:00 0
7f00b0000000-7f00b0021000 r--p 00000000 00:2b 77  /opt/a b/torch/lib/libtorch_cpu.so
7f00c0000000-7f00c0021000 r-xp 00001000 00:2b 77  /opt/a b/torch/lib/libtorch_cpu.so
7f00d0000000-7f00d0021000 r-xp 00000000 00:2b 78  /old/libc10.so (deleted)
7f00e0000000-7f00e0001000 rw-s 00000000 00:05 9   /dev/nvidiactl
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
7ffd9d1f2000-7ffd9d1f4000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""


def test_files_are_told_from_memory() -> None:
    mapped = parse_memory_map(MAPS)
    assert mapped.paths == {
        "/usr/bin/python3.11",
        "/opt/a b/torch/lib/libtorch_cpu.so",
        "/dev/nvidiactl",
    }
    assert mapped.deleted == {"/old/libc10.so"}
    assert mapped.all_paths == mapped.paths | mapped.deleted


def test_a_device_of_nvidia_shows_that_cuda_is_up() -> None:
    assert parse_memory_map(MAPS).uses_nvidia
    without = b"".join(line for line in MAPS.splitlines(True) if b"nvidia" not in line)
    assert not parse_memory_map(without).uses_nvidia


def test_the_layout_is_an_address_that_chance_chose() -> None:
    assert parse_memory_map(MAPS).layout == "7ffd9d1f2000"
    assert parse_memory_map(b"").layout == ""


def test_this_process_has_mapped_what_it_maps(tmp_path: Path) -> None:
    path = tmp_path / "a file"
    path.write_bytes(bytes(100))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        mapped = read_memory_map(os.getpid())
        assert mapped is not None
        assert str(path) in mapped.paths
        path.unlink()
        mapped = read_memory_map(os.getpid())
        assert mapped is not None
        assert str(path) in mapped.deleted
        assert str(path) not in mapped.paths


def test_a_process_that_has_ended_has_no_map() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(NoSuchProcess):
        read_memory_map(ended.pid)
