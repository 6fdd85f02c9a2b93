"""Each stretch of a step belongs to the part that it is in, and costs no more than it may."""

from __future__ import annotations

import pytest

from tests.support.modelled_peaks import MIB, ModelledPeaks
from vramscope.peaks.split_rate import SplitRate
from vramscope.peaks.step_parts import PART_NAMES, StepParts
from vramscope_protocol.columns import UNKNOWN


class Rig(ModelledPeaks):
    """Parts of a job that the test plays. Every step is split unless a budget says otherwise."""

    def __init__(self, budget: float = 1.0) -> None:
        super().__init__()
        self.rate = SplitRate(budget)
        self.parts = StepParts(self.meter, self.rate, self.charge, self.clock_ns)
        self.end_step()
        self.now_ns += 10**9
        self.end_step()

    def end_step(self, data_wait_us: int = 0) -> tuple[int, dict[str, int]]:
        self.meter.mark(at_step_end=True)
        part, values = self.parts.step_ended(data_wait_us)
        return part, dict(zip(PART_NAMES, values, strict=True))

    def forward(self, mib: int, took_us: int = 0) -> None:
        self.peak(mib, took_us)

    def backward(self, mib: int, took_us: int = 0) -> None:
        self.parts.backward_begins()
        self.peak(mib, took_us)
        self.parts.backward_ended()

    def optimizer(self, mib: int, took_us: int = 0, *, ends_step: bool = False) -> None:
        self.parts.optimizer_begins()
        self.peak(mib, took_us)
        if not ends_step:
            self.parts.optimizer_ended()


def mib_of(values: dict[str, int], gauge: str) -> list[int]:
    return [values[f"part.{part}.{gauge}"] // MIB for part in ("forward", "backward", "optimizer")]


def times_of(values: dict[str, int]) -> list[int]:
    return [values[f"part.{part}.time_us"] for part in ("forward", "backward", "optimizer")]


def test_a_step_has_the_peak_the_volume_and_the_time_of_each_part() -> None:
    rig = Rig()
    rig.forward(30, took_us=500)
    rig.backward(50, took_us=900)
    rig.optimizer(20, took_us=100, ends_step=True)
    part, values = rig.end_step()
    assert part == 2
    assert mib_of(values, "peak_bytes") == [30, 50, 20]
    assert mib_of(values, "volume_bytes") == [30, 50, 20]
    assert times_of(values) == [500, 900, 100]


def test_what_is_held_counts_in_every_part() -> None:
    rig = Rig()
    rig.keep(100)
    rig.backward(50)
    rig.optimizer(20, ends_step=True)
    _, values = rig.end_step()
    assert mib_of(values, "peak_bytes") == [100, 150, 120]
    assert mib_of(values, "volume_bytes") == [100, 50, 20]


def test_accumulated_passes_and_several_optimizers_add_up_and_the_highest_peak_counts() -> None:
    rig = Rig()
    for forward, backward in ((30, 50), (35, 40), (10, 60)):
        rig.forward(forward, took_us=10)
        rig.backward(backward, took_us=20)
    rig.optimizer(5, took_us=3)
    rig.optimizer(7, took_us=4, ends_step=True)
    _, values = rig.end_step()
    assert mib_of(values, "peak_bytes") == [35, 60, 7]
    assert mib_of(values, "volume_bytes") == [75, 150, 12]
    assert times_of(values) == [30, 60, 7]


def test_between_backward_and_optimizer_is_outside_of_all_parts() -> None:
    rig = Rig()
    rig.forward(10)
    rig.backward(20)
    rig.peak(80, took_us=700)  # clipping, say
    rig.optimizer(5)
    rig.peak(1, took_us=30)
    part, values = rig.end_step()
    assert part == 0
    assert mib_of(values, "peak_bytes") == [10, 20, 5]
    assert times_of(values) == [0, 0, 0]


@pytest.mark.parametrize(
    ("forward", "backward", "optimizer", "part"),
    [(9, 5, 1, 1), (5, 9, 1, 2), (5, 1, 9, 3), (9, 9, 9, 1), (5, 9, 9, 2)],
)
def test_the_part_of_the_peak_is_the_first_that_came_to_it(
    forward: int, backward: int, optimizer: int, part: int
) -> None:
    rig = Rig()
    rig.forward(forward)
    rig.backward(backward)
    rig.optimizer(optimizer, ends_step=True)
    assert rig.end_step()[0] == part


def test_waiting_for_data_is_no_part_of_the_forwards_time() -> None:
    rig = Rig()
    rig.forward(1, took_us=500)
    rig.backward(1, took_us=500)
    _, values = rig.end_step(data_wait_us=120)
    assert times_of(values)[:2] == [380, 500]


def test_unknown_waiting_is_left_in() -> None:
    rig = Rig()
    rig.forward(1, took_us=500)
    rig.backward(1)
    assert times_of(rig.end_step(data_wait_us=UNKNOWN)[1])[0] == 500


def test_without_a_backward_that_is_seen_forward_and_backward_are_unknown() -> None:
    rig = Rig()
    rig.forward(50)  # and torch.autograd.grad, perhaps
    rig.optimizer(20, ends_step=True)
    part, values = rig.end_step()
    assert part == 0
    assert values["part.forward.peak_bytes"] == values["part.backward.time_us"] == UNKNOWN
    assert values["part.optimizer.peak_bytes"] == 20 * MIB


def test_a_closure_of_the_optimizer_runs_its_backward_inside_of_it() -> None:
    rig = Rig()
    rig.parts.optimizer_begins()
    for _ in range(2):
        rig.peak(3, took_us=10)
        rig.backward(30, took_us=20)
    rig.peak(4, took_us=5)
    _, values = rig.end_step()
    assert mib_of(values, "peak_bytes")[1:] == [30, 4]
    assert times_of(values)[1:] == [40, 25]


def test_an_end_that_never_began_and_a_begin_that_never_ends_do_no_harm() -> None:
    rig = Rig()
    rig.parts.backward_ended()
    rig.parts.optimizer_ended()
    rig.parts.backward_begins()
    rig.end_step()
    rig.forward(5)
    rig.backward(6)
    rig.optimizer(7, ends_step=True)
    assert mib_of(rig.end_step()[1], "peak_bytes") == [5, 6, 7]


def test_where_the_device_is_not_at_rest_the_step_is_not_split() -> None:
    rig = Rig()
    rig.forward(5)
    rig.is_at_rest = False
    rig.backward(6)
    rig.optimizer(7, ends_step=True)
    rig.is_at_rest = True
    part, values = rig.end_step()
    assert (part, set(values.values())) == (0, {UNKNOWN})
    rig.forward(5)
    rig.backward(6)
    assert mib_of(rig.end_step()[1], "peak_bytes")[:2] == [5, 6]


def test_a_reset_of_the_job_within_a_part_hides_nothing_of_it() -> None:
    rig = Rig()
    rig.forward(40)
    rig.user.reset()
    rig.forward(10)
    rig.backward(20)
    assert mib_of(rig.end_step()[1], "peak_bytes")[:2] == [40, 20]
    assert rig.allocated_peak() == 20 * MIB


def test_steps_that_are_not_split_cost_nothing_within_and_say_nothing() -> None:
    rig = Rig(budget=0.0005)
    rig.take_ns = 50_000
    takes: list[int] = []
    unknown = 0
    for _ in range(2000):
        before = rig.takes
        rig.forward(5, took_us=4000)
        rig.backward(6, took_us=5000)
        rig.optimizer(7, took_us=1000, ends_step=True)
        takes.append(rig.takes - before)
        unknown += set(rig.end_step()[1].values()) == {UNKNOWN}
    assert set(takes) == {0, 3}
    assert unknown == takes.count(0)
    assert 0 < takes.count(3) * 3 * 50_000 <= 0.0005 * rig.now_ns
    assert rig.charged_ns == takes.count(3) * 3 * 50_000


def test_what_splitting_costs_is_not_in_the_times() -> None:
    rig = Rig()
    rig.take_ns = 1_000_000
    rig.forward(5, took_us=100)
    rig.backward(6, took_us=200)
    assert times_of(rig.end_step()[1])[:2] == [100, 200]
