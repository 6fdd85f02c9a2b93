"""What the agent's own collectors promise."""

from __future__ import annotations

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.collectors.collector import Collector
from vramscope.collectors.garbage_collection import GarbageCollection
from vramscope.collectors.host import HostCollector


@pytest.mark.parametrize("collector", [HostCollector(FakeClock()), GarbageCollection()])
def test_one_value_for_each_name_and_names_that_stay(collector: Collector) -> None:
    names = collector.names
    assert len(collector.read()) == len(names) == len(set(names))
    assert collector.names is names
