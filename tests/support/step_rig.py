"""A step tracker with everything around it, for tests that end steps."""

from __future__ import annotations

from typing import Any

from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.recording_outbox import RecordingOutbox
from vramscope.collectors.allocator import AllocatorCounters
from vramscope.collectors.self_cost import SelfCost
from vramscope.devices.device import Device
from vramscope.notices import Notices
from vramscope.peaks.step_peaks import StepPeaks
from vramscope.phases.phases import Phases
from vramscope.steps.tracker import StepTracker


class Rig:
    """A tracker over a fake device; real torch where a test installs it."""

    def __init__(
        self,
        fields: tuple[str, ...] | None = None,
        *,
        device: Device | None = None,
        peaks: StepPeaks | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.device = FakeDevice()
        self.outbox = RecordingOutbox()
        self.notices = Notices()
        self.phases = Phases(self.clock, self.outbox.put, self.notices)
        self.self_cost = SelfCost(lambda: 0)
        self.commands_ran_at: list[int] = []
        self.boundaries = 0
        self.tracker = StepTracker(
            device or self.device,
            AllocatorCounters(fields),
            self.outbox,
            clock=self.clock,
            notices=self.notices,
            self_cost=self.self_cost,
            phases=self.phases,
            run_commands=self.commands_ran_at.append,
            on_boundary=self._on_boundary,
            peaks=peaks,
        )

    def _on_boundary(self) -> None:
        self.boundaries += 1

    def rows(self) -> list[dict[str, Any]]:
        self.tracker.flush()
        return self.outbox.rows("step")


def parameter() -> Any:
    import torch

    return torch.nn.Parameter(torch.ones(2))


def sgd(*parameters: Any) -> Any:
    import torch

    return torch.optim.SGD(parameters or [parameter()], lr=0.1)


def backward_with_steps_inside(weights: list[Any]) -> None:
    sum((weight * 2).sum() for weight in weights).backward()


def step_in_backward(weights: list[Any]) -> None:
    for weight in weights:
        optimizer = sgd(weight)
        weight.register_post_accumulate_grad_hook(
            lambda parameter, optimizer=optimizer: optimizer.step()
        )
