"""A history over a PyTorch that only notes what it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.fake_device import FakeDevice
from vramscope.collectors.self_cost import SelfCost
from vramscope.history.history import History
from vramscope.history.snapshot_folder import SnapshotFolder
from vramscope.transport.snapshot_lane import Shipment
from vramscope_protocol.messages import SnapshotBegin

MIB = 1 << 20


def made_snapshot(entries: int = 0, blocks: int = 1) -> dict[str, Any]:
    """A snapshot of one segment, in PyTorch's structure."""
    frames = [{"name": "forward", "filename": "train.py", "line": 7}]
    segment = {
        "device": 0,
        "address": 1 << 40,
        "total_size": blocks * 512,
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "allocated_size": blocks * 512,
        "active_size": blocks * 512,
        "requested_size": blocks * 512,
        "blocks": [
            {
                "address": (1 << 40) + 512 * number,
                "size": 512,
                "requested_size": 512,
                "state": "active_allocated",
                "frames": frames,
            }
            for number in range(blocks)
        ],
    }
    trace = [
        {
            "action": "alloc",
            "addr": (1 << 40) + 512 * number,
            "size": 512,
            "stream": 0,
            "time_us": 1_800_000_000_000_000 + number,
            "frames": frames,
        }
        for number in range(entries)
    ]
    return {"segments": [segment], "device_traces": [trace], "allocator_settings": {}}


class NotingPytorch:
    """Has the interface of ``PytorchHistory``."""

    version = "2.13.0"

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.recording = False
        self.is_calling = False
        self.entries = 3
        self.error: BaseException | None = None

    def is_recording(self) -> bool:
        return self.recording

    def start(self, mode: str, *, stacks: bool, max_entries: int) -> None:
        self.calls.append(("start", mode, stacks, max_entries))
        if self.error is not None:
            raise self.error
        self.recording = True

    def stop(self) -> None:
        self.calls.append("stop")
        self.recording = False

    def snapshot(self, *, traces: bool) -> dict[str, Any]:
        self.calls.append(("snapshot", traces))
        return made_snapshot(self.entries if traces else 0)


class HistoryRig:
    """A history with a folder and a list of what was shipped."""

    def __init__(self, folder: Path, max_bytes: int = 64 * MIB) -> None:
        self.pytorch = NotingPytorch()
        self.device = FakeDevice()
        self.shipped: list[Shipment] = []
        self.folder = SnapshotFolder(str(folder / "spools"), "one-snapshots", max_bytes)
        self.history = History(
            self.pytorch,  # type: ignore[arg-type]  # has the methods that are used
            self.device,
            self.folder,
            self.shipped.append,
            SelfCost(lambda: 0),
        )

    @property
    def begins(self) -> list[SnapshotBegin]:
        """What is said before each of them."""
        return [each.begin for each in self.shipped if isinstance(each.begin, SnapshotBegin)]
