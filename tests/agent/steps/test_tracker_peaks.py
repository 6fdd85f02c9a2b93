"""Peaks and parts of real training steps, over an emulated device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.step_rig import Rig, sgd, step_in_backward
from vramscope_protocol.columns import UNKNOWN

pytestmark = pytest.mark.torch

MIB = 1 << 20


class EmulatedRig(Rig):
    """A tracker whose device sees the tensors of this thread; every step is split."""

    def __init__(self, emulation: Any, budget: float = 1.0, *, listens: bool = True) -> None:
        from vramscope.emulation.peaks import EmulatedPeaks
        from vramscope.peaks.peaks import Peaks

        peaks = Peaks(EmulatedPeaks(emulation.device), budget, lambda spent_ns: None)
        super().__init__(device=emulation.device, peaks=peaks.steps)
        self.backwards: list[int] = []
        if listens:
            self.tracker.listen_backward(
                lambda: self.backwards.append(self.tracker.step), lambda: True
            )
        self.tracker.install()


@pytest.fixture
def emulation() -> Iterator[Any]:
    from vramscope.emulation import start_emulation

    emulation = start_emulation(1 << 30)
    yield emulation
    emulation.stop()


@pytest.fixture
def rig(emulation: Any) -> Iterator[EmulatedRig]:
    rig = EmulatedRig(emulation)
    yield rig
    rig.tracker.remove()


def weight(mib: int) -> Any:
    import torch

    return torch.nn.Parameter(torch.ones(mib * MIB // 4))


def part(row: dict[str, Any], name: str) -> tuple[int, int]:
    peak_bytes, volume_bytes = (row[f"part.{name}.{gauge}_bytes"] for gauge in ("peak", "volume"))
    return peak_bytes // MIB, volume_bytes // MIB


def test_the_parts_of_a_training_step(rig: EmulatedRig) -> None:
    parameter = weight(4)
    optimizer = sgd(parameter)
    for _ in range(4):
        parameter.exp().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    row = rig.rows()[-1]
    # The weight and its exponential; then its gradient besides.
    assert part(row, "forward") == (8, 4)
    assert part(row, "backward") == (12, 4)
    assert row["step.peak_part"] == 2
    assert row["step.peak_allocated_bytes"] == row["part.backward.peak_bytes"]
    volumes = [row[f"part.{name}.volume_bytes"] for name in ("forward", "backward", "optimizer")]
    assert sum(volumes) == row["step.allocated_volume_bytes"]
    times = [row[f"part.{name}.time_us"] for name in ("forward", "backward", "optimizer")]
    assert min(times) >= 0


def test_accumulated_passes_are_one_step(rig: EmulatedRig) -> None:
    parameter = weight(4)
    optimizer = sgd(parameter)
    for _ in range(4):
        for factor in (2, 3, 4):
            (parameter * factor).sum().backward()
        optimizer.step()
    rows = rig.rows()
    assert rig.backwards == [0, 1, 2, 3]
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    # A sum at a time, and the gradient that stays; three products.
    assert part(rows[-1], "forward") == (12, 12)


def test_a_backward_is_told_if_it_is_the_first_of_its_step_and_somebody_wants_it(
    emulation: Any,
) -> None:
    rig = EmulatedRig(emulation, budget=0.0, listens=False)
    wants = [False, True, True, False]
    rig.tracker.listen_backward(
        lambda: rig.backwards.append(rig.tracker.step), lambda: wants.pop(0)
    )
    rig.tracker.install()
    parameter = weight(1)
    optimizer = sgd(parameter)
    for _ in range(4):
        for _ in range(2):  # by the second one there is a gradient of this step
            (parameter * 2).sum().backward()
        optimizer.step()
    rig.tracker.remove()
    assert rig.backwards == [1, 2]
    assert wants == []


def test_in_a_step_that_is_not_split_nothing_is_marked_within(emulation: Any) -> None:
    from vramscope.peaks.peak_meter import PeakMeter

    rig = EmulatedRig(emulation, budget=1e-9)
    parameter = weight(1)
    optimizer = sgd(parameter)
    marks: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        mark = PeakMeter.mark

        def counted(meter: PeakMeter, *, at_step_end: bool = False, **options: bool) -> Any:
            marks.append(at_step_end)
            return mark(meter, at_step_end=at_step_end, **options)

        patch.setattr(PeakMeter, "mark", counted)
        for _ in range(5):
            (parameter * 2).sum().backward()
            optimizer.step()
    rig.tracker.remove()
    assert marks == [True] * 5


def test_two_optimizers_of_one_step_are_both_the_optimizer(rig: EmulatedRig) -> None:
    first, second = weight(1), weight(8)
    one, other = sgd(first), sgd(second)
    for _ in range(6):
        (first * 2).sum().backward()
        one.step()
        (second * 2).sum().backward()
        other.step()
    rows = rig.rows()
    assert rig.tracker.step == 6
    assert rows[-1]["part.optimizer.time_us"] >= 0
    assert part(rows[-1], "forward")[0] == 9 + 1 + 8 + 8


def test_an_optimizer_inside_the_backward_splits_nothing(rig: EmulatedRig) -> None:
    parameter = weight(2)
    step_in_backward([parameter])
    for _ in range(6):
        (parameter * 2).sum().backward()
    rows = rig.rows()
    assert len(rows) >= 4
    assert {row["step.peak_part"] for row in rows} == {0}
    assert {row["part.optimizer.peak_bytes"] for row in rows} == {UNKNOWN}


def test_marked_steps_have_parts_too(rig: EmulatedRig) -> None:
    parameter = weight(4)
    for _ in range(4):
        (parameter * 2).sum().backward()
        rig.tracker.mark_step()
    row = rig.rows()[-1]
    assert part(row, "forward")[0] == 12  # the gradient of before as well
    assert row["part.optimizer.peak_bytes"] == UNKNOWN
    assert row["step.peak_part"] == 2


def test_without_a_budget_pytorch_is_left_alone(emulation: Any) -> None:
    import torch
    from torch.optim import optimizer as module

    original = torch.autograd.backward
    rig = EmulatedRig(emulation, budget=0.0, listens=False)
    hooks: Any = module
    assert torch.autograd.backward is original
    assert not hooks._global_optimizer_pre_hooks
    parameter = weight(1)
    optimizer = sgd(parameter)
    for _ in range(3):
        (parameter * 2).sum().backward()
        optimizer.step()
    rows = rig.rows()
    rig.tracker.remove()
    assert rows[-1]["step.peak_allocated_bytes"] > 0
    assert "step.peak_part" not in rows[-1]


def test_everything_is_taken_out_again(emulation: Any) -> None:
    import torch
    from torch.optim import optimizer as module

    original = torch.autograd.backward
    rig = EmulatedRig(emulation)
    hooks: Any = module
    assert torch.autograd.backward is not original
    assert hooks._global_optimizer_pre_hooks
    rig.tracker.remove()
    assert torch.autograd.backward is original
    assert not hooks._global_optimizer_pre_hooks
    assert not hooks._global_optimizer_post_hooks
