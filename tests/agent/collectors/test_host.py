"""Host memory of this process, read a little at a time, or an honest unknown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.collectors.host import NAMES, HostCollector
from vramscope.collectors.pinned_memory import PinnedMemory, PinnedMemoryReader
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.series import SERIES


class Pinned(PinnedMemoryReader):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__(lambda: None)
        self.asked = 0

    def read(self) -> PinnedMemory:
        self.asked += 1
        return PinnedMemory(self.asked, 100 + self.asked)


def values(collector: HostCollector) -> dict[str, int]:
    return dict(zip(NAMES, collector.read(), strict=True))


def test_every_name_is_a_series_with_a_definition() -> None:
    assert set(NAMES) == {name for name in SERIES if name.startswith("host.")}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_it_reads_this_process_at_the_first_sample() -> None:
    now = values(HostCollector(FakeClock()))
    assert 1 << 20 < now["host.rss_bytes"] < 1 << 40
    assert now["host.threads"] >= 1
    assert now["host.workers"] >= 0
    assert now["host.pinned_bytes"] == UNKNOWN


def test_one_reading_a_sample_and_each_in_its_turn(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("VmRSS:\t20 kB\n")
    clock, pinned = FakeClock(), Pinned()
    collector = HostCollector(clock, proc=str(tmp_path), pinned=pinned)
    assert values(collector)["host.rss_bytes"] == 20480
    assert pinned.asked == 1
    status.write_text("VmRSS:\t21 kB\n")
    clock.advance(0.9)
    assert values(collector)["host.rss_bytes"] == 20480
    clock.advance(0.1)
    seen = [values(collector) for _ in range(2)]
    assert [each["host.rss_bytes"] for each in seen] == [21504, 21504]
    assert [each["host.pinned_bytes"] for each in seen] == [1, 2]


def test_at_a_low_rate_every_reading_still_gets_its_turn(tmp_path: Path) -> None:
    clock, pinned = FakeClock(), Pinned()
    collector = HostCollector(clock, proc=str(tmp_path), pinned=pinned)
    collector.read()
    for _ in range(20):
        clock.advance(10)
        collector.read()
    assert pinned.asked == 1 + 4  # of six readings that are all overdue


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    now = values(HostCollector(FakeClock(), proc=str(tmp_path)))
    names = ("host.rss_bytes", "host.threads", "host.limit_bytes", "host.limit_used_bytes")
    assert [now[name] for name in names] == [UNKNOWN] * 4
