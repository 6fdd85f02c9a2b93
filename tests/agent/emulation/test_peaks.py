"""On an emulated device steps have exact peaks, and PyTorch's functions answer as without us."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from vramscope.emulation import start_emulation
from vramscope.emulation.emulation import Emulation
from vramscope.emulation.peaks import EmulatedPeaks
from vramscope_protocol.columns import UNKNOWN

MIB = 1 << 20


@pytest.fixture
def emulation() -> Iterator[Emulation]:
    emulation = start_emulation(1 << 30)
    yield emulation
    emulation.stop()


def peak(mib: int) -> None:
    torch.ones(mib * MIB // 4)


def test_each_step_has_its_peak_and_the_job_its_own(emulation: Emulation) -> None:
    peaks = EmulatedPeaks(emulation.device)
    peaks.take()
    for mib in (30, 10, 20):
        peak(mib)
        interval = peaks.take()
        assert interval is not None
        assert interval.peaks[0] == mib * MIB
        assert torch.cuda.max_memory_allocated() == 30 * MIB
        assert interval.stats == emulation.device.memory_stats()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 0
    assert "30.0" not in torch.cuda.memory_summary()


def test_the_jobs_answers_are_those_of_a_twin_without_the_agent() -> None:
    def job(takes_peaks: bool) -> tuple[list[Any], list[int]]:
        emulation = start_emulation(1 << 30)
        peaks = EmulatedPeaks(emulation.device)
        rng = random.Random(4)
        answers: list[Any] = []
        of_steps: list[int] = []
        kept: list[torch.Tensor] = []
        try:
            for _ in range(120):
                for _ in range(rng.randrange(1, 5)):
                    kept.append(torch.ones(rng.randrange(1, 1 << 18)))
                    if rng.random() < 0.6:
                        kept.pop(rng.randrange(len(kept)))
                    if rng.random() < 0.1:
                        torch.cuda.reset_peak_memory_stats()
                    if rng.random() < 0.1:
                        torch.cuda.reset_accumulated_memory_stats()
                    answers.append(torch.cuda.memory_stats())
                if takes_peaks:
                    interval = peaks.take()
                    assert interval is not None
                    of_steps.append(interval.peaks[0])
        finally:
            emulation.stop()
        return answers, of_steps

    watched, of_steps = job(takes_peaks=True)
    plain, _ = job(takes_peaks=False)
    assert watched == plain
    assert UNKNOWN not in of_steps[1:]
    assert len(set(of_steps)) > 50


def test_inside_a_backward_and_from_another_thread_nothing_is_reset(emulation: Emulation) -> None:
    peaks = EmulatedPeaks(emulation.device)
    peaks.take()
    within: list[Any] = []
    loss = (torch.ones(3, requires_grad=True) * 2).sum()
    loss.register_hook(lambda grad: within.append(peaks.take(at_step_end=False)))
    loss.backward()
    thread = threading.Thread(target=lambda: within.append(peaks.take(at_step_end=False)))
    thread.start()
    thread.join(30)
    assert within == [None, None]
