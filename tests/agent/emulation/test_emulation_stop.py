"""Stopped, an emulation has never been."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from vramscope.emulation import Emulation

pytestmark = pytest.mark.torch

Start = Callable[..., "Emulation"]
MIB = 1 << 20


def held(emulation: Emulation) -> tuple[int, int]:
    """Storages and their bytes that the device holds now."""
    gc.collect()
    stats = emulation.device.memory_stats()
    return stats["allocation"]["all"]["current"], stats["requested_bytes"]["all"]["current"]


def test_stop_takes_every_trace_away(emulate: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    depth = torch._C._len_torch_dispatch_stack()
    emulation = emulate(MIB)
    assert os.environ["TORCHDYNAMO_DISABLE"] == "1"

    emulation.stop()
    emulation.stop()

    assert torch._C._len_torch_dispatch_stack() == depth
    assert os.environ["TORCHDYNAMO_DISABLE"] == "0"
    torch.empty(2 * MIB, dtype=torch.uint8)
    assert held(emulation) == (0, 0)


def test_stopped_by_another_thread_it_is_gone_from_the_thread_that_trains(emulate: Start) -> None:
    depth = torch._C._len_torch_dispatch_stack()
    emulation = emulate(64 * MIB)
    data = torch.ones(64)
    stopping = threading.Thread(target=emulation.stop)
    stopping.start()
    while stopping.is_alive():
        data = data + 1  # in the middle of operations, as training is
    assert torch._C._len_torch_dispatch_stack() == depth


def test_many_emulations_after_each_other_leave_one_fork_handler(
    emulate: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: list[object] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **given: handlers.append(given))
    for _ in range(3):
        emulate(MIB).stop()
    assert len(handlers) <= 1


def test_stop_under_a_mode_of_the_job_leaves_the_job_alone(emulate: Start) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    emulation = emulate(MIB)
    with FlopCounterMode(display=False) as counter:
        emulation.stop()
        torch.ones(500, 500) @ torch.ones(500, 500)

    assert counter.get_total_flops() == 2 * 500**3
    assert held(emulation) == (0, 0)
