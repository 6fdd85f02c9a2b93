"""However the job reaches PyTorch's recording, it is seen before PyTorch is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vramscope.collectors.self_cost import SelfCost
from vramscope.history.history import History
from vramscope.history.pytorch_history import PytorchHistory
from vramscope.history.snapshot_folder import SnapshotFolder
from vramscope.history.user_recording import UserRecording
from vramscope_protocol.parameters import HistoryParams


class Torch:
    """A module with the function, as PyTorch calls down from it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.order: list[str] = []
        memory: Any = ModuleType("torch.cuda.memory")
        c_module: Any = ModuleType("torch._C")
        c_module._cuda_record_memory_history = lambda *args: self.order.append("recorded")

        def record(enabled: str | None = "all") -> None:
            sys.modules["torch._C"]._cuda_record_memory_history(enabled)

        memory._record_memory_history = record
        self.memory, self.c_module, self.imported = memory, c_module, record
        monkeypatch.setitem(sys.modules, "torch.cuda.memory", memory)
        monkeypatch.setitem(sys.modules, "torch._C", c_module)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Torch:
    return Torch(monkeypatch)


def watched(fake: Torch, is_ours: bool = False) -> UserRecording:
    recording = UserRecording(lambda: is_ours, lambda: fake.order.append("told"))
    recording.install()
    return recording


def test_a_call_is_told_before_it_is_made(fake: Torch) -> None:
    watched(fake)
    fake.memory._record_memory_history("all")
    assert fake.order[0] == "told"
    assert fake.order[-1] == "recorded"


def test_so_is_one_of_a_name_that_was_imported_earlier(fake: Torch) -> None:
    watched(fake)
    fake.imported(None)
    assert fake.order == ["told", "recorded"]


def test_our_own_calls_are_not(fake: Torch) -> None:
    watched(fake, is_ours=True)
    fake.memory._record_memory_history("all")
    assert fake.order == ["recorded"]


def test_it_goes_without_a_trace(fake: Torch) -> None:
    before = (fake.memory._record_memory_history, fake.c_module._cuda_record_memory_history)
    recording = watched(fake)
    assert fake.memory._record_memory_history is not before[0]
    recording.remove()
    now = (fake.memory._record_memory_history, fake.c_module._cuda_record_memory_history)
    assert now == before


def test_whoever_is_told_may_take_it_away_at_once(fake: Torch) -> None:
    recording = watched(fake)
    recording._on_call = recording.remove
    fake.memory._record_memory_history("all")
    assert fake.order == ["recorded"]
    assert fake.memory._record_memory_history is fake.imported


def test_in_a_forked_child_it_tells_nobody(fake: Torch) -> None:
    recording = watched(fake)
    recording.forget_after_fork()
    fake.memory._record_memory_history("all")
    assert fake.order == ["recorded"]


@pytest.mark.torch
def test_the_jobs_recording_wins_over_one_of_ours_that_runs(
    emulate: Callable[..., Any], tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    device = emulate().device
    memory: Any = torch.cuda.memory
    record = memory._record_memory_history
    history = History(
        PytorchHistory(emulated=True),
        device,
        SnapshotFolder(str(tmp_path), "one", 1 << 20),
        lambda shipment: None,
        SelfCost(lambda: 0),
    )
    window = history.start(HistoryParams(steps=9), "command", "c1")
    ours = torch.ones(1 << 10)
    memory._record_memory_history("all", context=None, max_entries=50)
    assert window.ended == "the job has started or stopped a recording of its own"
    assert memory._record_memory_history is record
    del ours
    trace = memory._snapshot()["device_traces"][0]
    assert [entry["action"] for entry in trace] == ["free_requested", "free_completed"]
    history.at_boundary(1)
    history.close(0)
    assert device.is_recording
    memory._record_memory_history(None)
