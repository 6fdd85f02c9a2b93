"""What a report is made of, with a fake device and a job that does not move."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.recording_outbox import RecordingOutbox
from vramscope.identity.identity import identify
from vramscope.oom import oom_observer
from vramscope.oom.device_readings import DeviceReadings
from vramscope.oom.recent_rows import RecentRows
from vramscope.oom.report import Sources
from vramscope.tensors.census import Census
from vramscope_protocol.account import MemoryPart, ProcessMemory


@pytest.fixture(autouse=True)
def reports_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search looks through the whole process, and earlier tests have left a lot in it."""
    monkeypatch.setattr(oom_observer, "COLLECT_S", 60.0)
    monkeypatch.setattr(oom_observer, "BUDGET_S", 60.0)


@pytest.fixture
def device() -> FakeDevice:
    """The device; a test may change its answers."""
    return FakeDevice()


@pytest.fixture
def sources(device: FakeDevice) -> Callable[..., Sources]:
    """Makes sources, with some parts replaced."""

    def make(**changes: Any) -> Sources:
        outbox = RecordingOutbox()
        rows = RecentRows(lambda: outbox.tables, list, max_age_ns=None, max_rows=10)
        tensors = SimpleNamespace(
            latest=dict, count_now=lambda storage: Census(storage, names=True)
        )
        identity = identify(script="train.py", environ={})
        values: dict[str, Any] = {
            "identity": lambda: identity,
            "readings": DeviceReadings(device, emulated=True),
            "step": lambda: 7,
            "phase": lambda: "eval",
            "tensors": lambda: tensors,
            "samples": rows,
            "steps": rows,
            "settings": lambda: "expandable_segments:True",
            "software": lambda: {"torch": "2.11.0"},
            "processes": lambda: [ProcessMemory(identity.pid, "train.py", 5), ProcessMemory(1)],
            "outside": lambda: [MemoryPart("CUDA context", 9, "measured")],
            "emulated": True,
            "new_sizes": lambda: None,
        }
        return Sources(**(values | changes))

    return make
