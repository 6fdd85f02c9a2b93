"""The command is refused where nothing can be looked at, and while another goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.history_rig import HistoryRig
from vramscope.commands.call import Call, Handler
from vramscope.growth.explain import growth_handlers
from vramscope.growth.growth_watch import GrowthWatch
from vramscope.growth.host_watch import HostWatch
from vramscope.growth.optimizers_in_use import OptimizersInUse
from vramscope_protocol.command_table import command_spec
from vramscope_protocol.errors import VramscopeError

pytest.importorskip("torch")

pytestmark = pytest.mark.torch


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[HistoryRig]:
    rig = HistoryRig(tmp_path)
    yield rig
    rig.history.close(5.0)
    rig.history.remove_folder()


def handler(device: FakeDevice, rig: HistoryRig) -> Handler:
    handlers = growth_handlers(device, rig.history, id, OptimizersInUse(lambda: 0))
    return handlers["explain_growth"]


def call(**params: Any) -> Call:
    return Call(command_spec("explain_growth").params(**params), step=3, id="asked")


def test_one_at_a_time(rig: HistoryRig) -> None:
    explain = handler(FakeDevice(), rig)
    watch: Any = explain(call())
    assert isinstance(watch, GrowthWatch)
    assert rig.history.window is not None
    with pytest.raises(VramscopeError, match="looked at already"):
        explain(call())
    receipt = watch.cancel("no optimizer step within 30 s")
    assert receipt.state == "failed"
    assert rig.pytorch.calls[-1] == "stop"
    watch._pace.spent_ns = 0  # what it took to begin
    second: Any = explain(call())
    second.cancel("the process ends")


def test_the_host_is_looked_at_without_a_recording(rig: HistoryRig) -> None:
    watch: Any = handler(FakeDevice(), rig)(call(host=True))
    assert isinstance(watch, HostWatch)
    assert rig.pytorch.calls == []
    watch.cancel("enough")


def test_the_host_of_a_job_without_a_device(rig: HistoryRig) -> None:
    device = FakeDevice()
    device.stats = None
    watch: Any = handler(device, rig)(call(host=True))
    watch.cancel("enough")


def test_no_device_and_no_segments(rig: HistoryRig) -> None:
    device = FakeDevice()
    device.stats = None
    with pytest.raises(VramscopeError, match="not used the device"):
        handler(device, rig)(call())
    device = FakeDevice()
    device.no_segments_because = "a pool allocates through Python code"
    with pytest.raises(VramscopeError, match="through Python code"):
        handler(device, rig)(call())
    assert rig.pytorch.calls == []


@pytest.mark.parametrize("params", [{}, {"host": True}])
def test_what_was_dear_is_not_asked_again_until_it_was_within_the_share(
    rig: HistoryRig, monkeypatch: pytest.MonkeyPatch, params: dict[str, Any]
) -> None:
    explain = handler(FakeDevice(), rig)
    watch: Any = explain(call(**params))
    watch._pace.spent_ns += 100_000_000  # a search upwards
    watch.cancel("the end")
    with pytest.raises(VramscopeError, match=r"more than its share: ask again in \d+\.\d s"):
        explain(call())
    monkeypatch.setattr("vramscope.growth.pace.SHARE", 1e6)
    second: Any = explain(call())
    second.cancel("enough")
