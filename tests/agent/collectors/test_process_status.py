"""The kernel's words for the memory of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from vramscope.collectors.proc_text import ProcText
from vramscope.collectors.process_status import (
    ProcessStatus,
    parse_process_status,
    read_process_status,
)
from vramscope_protocol.columns import UNKNOWN

TEXT = b"""Name:\tpython
VmPeak:\t 9999 kB
VmLck:\t       4 kB
VmPin:\t       8 kB
VmRSS:\t  123456 kB
RssAnon:\t   10 kB
RssShmem:\t    512 kB
VmSwap:\t       0 kB
Threads:\t17
"""


def test_every_number_in_bytes() -> None:
    status = parse_process_status(TEXT)
    assert status == ProcessStatus(123456 << 10, 512 << 10, 0, 4 << 10, 8 << 10, 17, 10 << 10)


def test_a_kernel_that_says_less_leaves_the_rest_unknown() -> None:
    # A process that has ended and was not waited for has no memory lines at all.
    status = parse_process_status(b"Name:\tpython\nState:\tZ (zombie)\nThreads:\t1\n")
    assert (status.rss_bytes, status.shared_bytes, status.threads) == (UNKNOWN, UNKNOWN, 1)


@pytest.mark.parametrize("line", [b"VmRSS:\n", b"VmRSS: x kB\n", b"VmRSS: 12 pages\n", b"\xff:\n"])
def test_a_line_that_reads_otherwise_is_unknown(line: bytes) -> None:
    assert parse_process_status(line).rss_bytes == UNKNOWN


def test_a_process_that_is_gone_is_unknown(tmp_path: Path) -> None:
    assert read_process_status(ProcText(), str(tmp_path / "status")) == ProcessStatus()
