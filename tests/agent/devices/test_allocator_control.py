"""The function of each release is called, and where there is none the answer says why."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import FakeTorch, install_fake_torch
from vramscope.devices.allocator_control import allocator_control, torch_release


def job(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]) -> tuple[FakeTorch, list[Any]]:
    fake = install_fake_torch(monkeypatch, version)
    sent: list[Any] = []
    old, new = (
        "_cuda_cudaCachingAllocator_set_allocator_settings",
        "_accelerator_setAllocatorSettings",
    )
    c_module: Any = sys.modules["torch"]._C
    setattr(c_module, new if version >= (2, 10) else old, sent.append)
    cuda: Any = sys.modules["torch.cuda"]
    cuda.set_per_process_memory_fraction = lambda *call: sent.append(call)
    if version >= (2, 6):
        c_module._cuda_getMemoryFraction = lambda index: 0.5 + index
    return fake, sent


@pytest.mark.parametrize("version", [(2, 4), (2, 9), (2, 10), (2, 14)])
def test_settings_go_through_the_function_of_the_release(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]
) -> None:
    fake, sent = job(monkeypatch, version)
    fake.settings = {"max_split_size": -1}
    control = allocator_control(FakeDevice())
    assert control.release == torch_release() == version
    assert control.why_not() is None
    control.send("expandable_segments:True")
    assert sent == ["expandable_segments:True"]
    assert control.reported() == {"max_split_size": -1}


def test_the_cap_is_that_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    _, sent = job(monkeypatch, (2, 6))
    control = allocator_control(FakeDevice())
    control.set_fraction(0.25)
    assert sent == [(0.25, 0)]
    assert control.fraction() == 0.5
    job(monkeypatch, (2, 5))
    assert allocator_control(FakeDevice()).fraction() is None


def test_a_snapshot_that_would_cost_too_much_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, _ = job(monkeypatch, (2, 10))
    fake.records_history = True
    fake.settings = {"max_split_size": -1}
    assert allocator_control(FakeDevice()).reported() == {}


def test_where_nothing_can_be_set_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    control = allocator_control(FakeDevice())
    fake, _ = job(monkeypatch, (2, 12))
    fake.backend = "cudaMallocAsync"
    assert "(cudaMallocAsync) is not PyTorch's own" in str(control.why_not())
    fake.backend = "native"
    del sys.modules["torch"]._C._accelerator_setAllocatorSettings
    assert "no function to set its allocator" in str(control.why_not())
    fake.initialized = False
    assert "has not used CUDA" in str(control.why_not())
    assert control.reported() == {}
