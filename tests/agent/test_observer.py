"""The wired parts together, with no device, a fake one and an emulated one."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_torch import install_fake_torch
from tests.support.recording_outbox import RecordingOutbox
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.config import load_config
from vramscope.devices.device import DeviceMemory
from vramscope.growth.optimizers_in_use import OptimizersInUse
from vramscope.identity.identity import identify
from vramscope.notices import Notices
from vramscope.observer import Observer
from vramscope.sampling.clock import Clock
from vramscope.transport.snapshot_lane import Shipment
from vramscope_protocol.command_table import COMMANDS
from vramscope_protocol.messages import AgentStatus, Command, DeviceInfo, Event, SnapshotBegin


class Watch:
    """An observer and everything that it gives away."""

    def __init__(self, **options: Any) -> None:
        self.outbox = RecordingOutbox()
        self.notices = Notices()
        self.statuses: queue.Queue[AgentStatus] = queue.Queue()
        self.devices: queue.Queue[DeviceInfo] = queue.Queue()
        self.shipped: queue.Queue[Shipment] = queue.Queue()
        self.observer = Observer(
            load_config({}, **options),
            identify(script="train.py", environ={}),
            outbox=self.outbox,  # type: ignore[arg-type]  # has the methods that are used
            notices=self.notices,
            clock=Clock(),
            offer_status=self.statuses.put,
            other_cpu_ns=lambda: 0,
            on_device_change=self.devices.put,
            ship=self.shipped.put,
        )

    def states(self, identity: str) -> list[str]:
        return self.outbox.states(identity)


@pytest.fixture
def watch() -> Iterator[Callable[..., Watch]]:
    """Makes a started observer with these options."""
    watches: list[Watch] = []

    def start(**options: Any) -> Watch:
        watches.append(Watch(**options))
        watches[-1].observer.start()
        return watches[-1]

    yield start
    for each in watches:
        each.observer.stop(2)


def test_without_a_device_steps_samples_and_status_still_come(
    watch: Callable[..., Watch],
) -> None:
    watched = watch()
    status = watched.statuses.get(timeout=10)
    assert status.rate_hz == 10
    watched.observer.log({"loss": 0.5})
    watched.observer.mark_step()
    watched.observer.mark_step()
    watched.observer.stop(2)
    steps = watched.outbox.rows("step")
    assert [row["step"] for row in steps] == [1, 2]
    assert steps[0]["user.loss"] == 0.5
    assert watched.outbox.rows("sample")[0]["host.rss_bytes"] > 1 << 20


def test_after_stop_nothing_more_comes(watch: Callable[..., Watch]) -> None:
    watched = watch()
    watched.observer.stop(2)
    before = len(watched.outbox.messages)
    watched.observer.stop(2)
    assert [t.name for t in threading.enumerate() if t.name.startswith("vramscope-")] == []
    assert len(watched.outbox.messages) == before


def test_nvml_is_not_closed_under_a_call_that_hangs(
    watch: Callable[..., Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shutdown waits for the call, which would hold up the end of the job."""
    called: list[str] = []
    released, hangs = threading.Event(), threading.Event()

    def hang(monitor: NvmlMonitor, reserved_bytes: int = 0) -> DeviceMemory:
        hangs.set()
        released.wait(10)
        return DeviceMemory()

    monkeypatch.setattr(NvmlMonitor, "read", hang)
    monkeypatch.setattr(NvmlLibrary, "close", lambda library: called.append("close"))
    watched = watch()
    assert hangs.wait(10)
    watched.observer.stop(0.05)
    assert called == []
    released.set()
    watched.observer.stop(2)
    assert called == ["close"]


def test_a_command_that_still_waits_at_the_end_is_told_so(watch: Callable[..., Watch]) -> None:
    watched = watch()
    watched.observer.submit(Command("c1", "empty_cache"))
    watched.observer.stop(2)
    assert watched.states("c1") == ["queued", "failed"]
    receipt = watched.outbox.updates("c1")[-1].receipt
    assert receipt is not None
    assert "the process ended before the command could run" in receipt.message


def test_the_options_limit_the_commands(watch: Callable[..., Watch]) -> None:
    everything = watch().observer.commands()
    assert set(everything) == set(COMMANDS)
    only_reading = watch(allow="observe")
    assert "stats" in only_reading.observer.commands()
    assert "empty_cache" not in only_reading.observer.commands()
    only_reading.observer.submit(Command("c1", "empty_cache"))
    assert only_reading.states("c1") == ["refused"]
    assert watch(allow="gc_collect").observer.commands() == ["gc_collect"]
    assert "explain_growth" in only_reading.observer.commands()
    assert "explain_growth" not in watch(explain_growth="0").observer.commands()


@pytest.mark.torch
@pytest.mark.parametrize("is_on", [True, False])
def test_optimizers_are_noted_only_where_growth_may_be_explained(
    watch: Callable[..., Watch], monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    import torch

    seen: list[Any] = []
    monkeypatch.setattr(
        OptimizersInUse, "saw_optimizer", lambda self, optimizer: seen.append(optimizer)
    )
    watch(emulate=True, explain_growth=str(int(is_on)))
    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    optimizer = torch.optim.SGD([parameter])
    optimizer.step()
    assert seen == [optimizer] * is_on


def test_the_rate_and_the_series_are_those_that_were_asked_for(
    watch: Callable[..., Watch],
) -> None:
    watched = watch(rate_hz=40, fields="reserved_bytes.all.current")
    assert watched.statuses.get(timeout=10).rate_hz == 40
    watched.observer.stop(2)
    names = watched.outbox.rows("sample")[0]
    assert "reserved_bytes.all.current" in names
    assert "allocated_bytes.all.current" not in names


def test_the_device_that_the_training_thread_uses_is_followed(
    watch: Callable[..., Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = install_fake_torch(monkeypatch, (2, 11), device_count=2)
    fake.current_device = 1
    watched = watch()
    watched.observer.mark_step()
    changed = watched.devices.get(timeout=10)
    while changed.index != 1:
        changed = watched.devices.get(timeout=10)
    assert watched.observer.devices()[0].index == 1
    assert watched.observer.software()["torch"] == "2.11.0"


@pytest.mark.torch
def test_an_emulated_device_has_counters_commands_and_a_name(watch: Callable[..., Watch]) -> None:
    import torch

    watched = watch(emulate=True, capacity="64MiB")
    (device,) = watched.observer.devices()
    assert (device.emulated, device.total_bytes) == (True, 64 << 20)
    assert watched.observer.software() == {"torch": torch.__version__}
    kept = torch.ones(1 << 20)
    watched.observer.submit(Command("c1", "empty_cache"))
    watched.observer.mark_step()
    assert watched.states("c1") == ["queued", "running", "done"]
    watched.observer.stop(2)
    (row,) = watched.outbox.rows("step")
    assert row["allocated_bytes.all.current"] == kept.nbytes


@pytest.mark.torch
def test_steps_and_phases_have_peaks_unless_that_is_off(watch: Callable[..., Watch]) -> None:
    import torch

    watched = watch(emulate=True, capacity="64MiB")
    watched.observer.mark_step()
    leave = watched.observer.begin_phase("mine", "user")
    torch.ones(1 << 20)
    leave()
    watched.observer.mark_step()
    watched.observer.stop(2)
    row = watched.outbox.rows("step")[-1]
    assert row["step.peak_allocated_bytes"] == 4 << 20
    told = [each for each in watched.outbox.messages if isinstance(each, Event)]
    assert [each.data["peak_bytes"] for each in told if each.kind == "phase"][-1] == 4 << 20

    plain = watch(emulate=True, capacity="64MiB", peaks=False)
    plain.observer.mark_step()
    plain.observer.stop(2)
    assert not [name for name in plain.outbox.rows("step")[-1] if name.startswith("step.peak")]


@pytest.mark.torch
def test_a_recording_of_some_steps_is_shipped(watch: Callable[..., Watch], tmp_path: Path) -> None:
    import torch

    watched = watch(emulate=True, spool_dir=str(tmp_path))
    watched.observer.submit(Command("c1", "history_start", {"steps": 2}))
    for _ in range(3):
        watched.observer.mark_step()
        kept = torch.ones(1 << 18)
        del kept
    shipment = watched.shipped.get(timeout=10)
    assert isinstance(shipment.begin, SnapshotBegin)
    assert [step for step, _ in shipment.begin.steps] == [2, 3]
    watched.observer.stop(2)
    assert watched.states("c1") == ["queued", "running", "done"]
    receipt = watched.outbox.updates("c1")[-1].receipt
    assert receipt is not None
    assert receipt.result["snapshot"] == shipment.begin.id
    assert receipt.result["entries"] >= 4
    watched.observer.remove_files()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.torch
def test_a_stop_ends_a_recording(watch: Callable[..., Watch], tmp_path: Path) -> None:
    import torch

    watched = watch(emulate=True, spool_dir=str(tmp_path))
    watched.observer.submit(Command("c1", "history_start", {"steps": 9, "backward_lines": True}))
    watched.observer.mark_step()
    is_recording: Any = torch._C._cuda_isHistoryEnabled
    was_on = (is_recording(), torch.is_anomaly_enabled())
    watched.observer.stop(2)
    assert was_on == (True, True)
    assert not torch.is_anomaly_enabled()
    receipt = watched.outbox.updates("c1")[-1].receipt
    assert receipt is not None
    assert receipt.message == ("the agent is leaving; recording stopped after 0 of 9 steps")


@pytest.mark.torch
def test_pytorch_is_as_it_was_after_the_stop(watch: Callable[..., Watch]) -> None:
    import torch

    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.ones(1)
    optimizer = torch.optim.SGD([weight])
    depth = torch._C._len_torch_dispatch_stack()
    watched = watch(emulate=True)
    optimizer.step()
    watched.observer.stop(2)
    optimizer.step()
    watched.observer.stop(2)
    assert [row["step"] for row in watched.outbox.rows("step")] == [1]
    assert torch._C._len_torch_dispatch_stack() == depth


@pytest.mark.torch
def test_a_forked_child_counts_no_steps_even_under_the_parents_number(
    watch: Callable[..., Watch],
) -> None:
    import torch

    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.ones(1)
    optimizer = torch.optim.SGD([weight])
    watched = watch()
    own_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        watched.observer.forget_after_fork()
        os.getpid = lambda: own_pid  # as in another container
        optimizer.step()
        os._exit(watched.observer._steps.step)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    optimizer.step()
    watched.observer.stop(2)
    assert [row["step"] for row in watched.outbox.rows("step")] == [1]
