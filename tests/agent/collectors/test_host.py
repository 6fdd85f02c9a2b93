"""Resident memory of this process, or an honest unknown."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.collectors.host import HostCollector
from vramscope_protocol.columns import UNKNOWN

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_it_reads_this_process() -> None:
    rss_bytes = HostCollector(FakeClock()).rss_bytes()
    assert 1 << 20 < rss_bytes < 1 << 40


def test_it_reads_the_second_number_at_most_twice_a_second(tmp_path: Path) -> None:
    statm = tmp_path / "statm"
    statm.write_text("1000 20 30 4 0 5 0\n")
    clock = FakeClock()
    collector = HostCollector(clock, str(statm))
    assert collector.rss_bytes() == 20 * PAGE
    statm.write_text("1000 21 30 4 0 5 0\n")
    clock.advance(0.4)
    assert collector.rss_bytes() == 20 * PAGE
    clock.advance(0.2)
    assert collector.rss_bytes() == 21 * PAGE


@pytest.mark.parametrize("text", [None, "", "12", "1 x 3"])
def test_what_cannot_be_read_is_unknown(tmp_path: Path, text: str | None) -> None:
    statm = tmp_path / "statm"
    if text is not None:
        statm.write_text(text)
    assert HostCollector(FakeClock(), str(statm)).rss_bytes() == UNKNOWN
