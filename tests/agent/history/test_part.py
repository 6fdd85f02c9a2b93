"""Wired: the commands, the rule and the files belong to one stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from vramscope.collectors.self_cost import SelfCost
from vramscope.commands.call import Call
from vramscope.config import load_config
from vramscope.devices.device import DeviceMemory
from vramscope.history.part import HistoryPart
from vramscope.transport.snapshot_lane import Shipment
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.messages import Event
from vramscope_protocol.parameters import HistoryParams, SnapshotParams


class Part:
    def __init__(self, folder: Path, **options: Any) -> None:
        self.events: list[Event] = []
        self.shipped: list[Shipment] = []
        self.part = HistoryPart(
            load_config({}, spool_dir=str(folder), **options),
            "stream",
            FakeDevice(),
            clock=FakeClock(),
            emit=self.events.append,
            ship=self.shipped.append,
            self_cost=SelfCost(lambda: 0),
        )


def test_it_has_the_four_commands(tmp_path: Path) -> None:
    handlers = Part(tmp_path).part.handlers()
    assert set(handlers) == {"snapshot", "history_start", "history_stop", "history_dump"}


def test_without_a_device_each_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    handlers = Part(tmp_path).part.handlers()
    for name, params in (("snapshot", SnapshotParams()), ("history_start", HistoryParams())):
        with pytest.raises(VramscopeError, match="has not used the device"):
            handlers[name](Call(params))
    assert list(tmp_path.iterdir()) == []


def test_without_a_rule_nothing_begins(tmp_path: Path) -> None:
    part = Part(tmp_path)
    part.part.look(nested_stats(reserved_bytes=990), DeviceMemory(total_bytes=1000, used_bytes=990))
    part.part.at_boundary(1)
    assert part.events == []


def test_with_a_rule_it_is_tried(tmp_path: Path) -> None:
    part = Part(tmp_path, history_rule="above 90%")
    part.part.look(None, DeviceMemory(total_bytes=1000, used_bytes=10))
    part.part.at_boundary(1)
    assert part.events == []
    part.part.look(nested_stats(reserved_bytes=990), DeviceMemory(total_bytes=1000))
    part.part.at_boundary(2)
    assert "has not used the device" in part.events[0].text
    part.part.close(0)
    part.part.remove_files()
    part.part.forget_after_fork()
