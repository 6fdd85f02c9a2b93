"""Lines of /proc/PID/maps, also those that people forget."""

from __future__ import annotations

import os

from vramscope.injection.mappings import Mapping, parse_mappings, read_mappings

LINES = [
    "00400000-0041f000 r-xp 00001000 fd:01 1182 /opt/my pythons/bin/python3.11\n",
    "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n",
    "7f00a0000000-7f00a0001000 r--p 00002000 fd:01 7 /usr/lib/libc.so.6 (deleted)\n",
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
]


def test_paths_with_spaces_deleted_files_and_none() -> None:
    program, anonymous, deleted, kernel = parse_mappings(LINES)
    assert program == Mapping(0x400000, 0x41F000, "r-xp", 0x1000, "/opt/my pythons/bin/python3.11")
    assert (program.name, program.executable) == ("python3.11", True)
    assert (anonymous.path, anonymous.executable) == ("", False)
    assert deleted.path == "/usr/lib/libc.so.6"
    # It may be run but not read, so nothing can be looked for in it.
    assert (kernel.name, kernel.executable) == ("[vsyscall]", False)


def test_of_a_process() -> None:
    assert any(mapping.name.startswith("libc") for mapping in read_mappings(os.getpid()))
