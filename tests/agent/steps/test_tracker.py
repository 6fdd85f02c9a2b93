"""Steps are counted as the job counts them, and each leaves one exact row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fake_torch import nested_stats
from tests.support.step_rig import Rig, backward_with_steps_inside, parameter, sgd, step_in_backward
from vramscope.collectors.allocator import DEFAULT_KEYS
from vramscope.steps import tracker as tracker_module
from vramscope.steps.tracker import BATCH_FALLBACK_S, METERED_STEPS, TOLD_STEPS
from vramscope_protocol.codec import MAX_FIELDS, MAX_TABLES
from vramscope_protocol.columns import UNKNOWN


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.tracker.remove()


def test_a_row_has_every_counter_the_time_and_the_duration(rig: Rig) -> None:
    rig.tracker.mark_step()
    rig.device.stats = nested_stats(allocated_bytes=4096)
    rig.clock.advance(0.25)
    rig.tracker.mark_step()
    first, second = rig.rows()
    assert set(first) == {
        *("time_ns", "step", "phase", "step.duration_us", "step.data_wait_us"),
        "step.autocast_cache_bytes",
        *("step.batch_samples", "step.batch_count", "step.batch_size"),
        *DEFAULT_KEYS,
    }
    assert (first["step"], second["step"]) == (1, 2)
    assert first["step.duration_us"] == UNKNOWN
    assert second["step.duration_us"] == 250_000
    assert second["allocated_bytes.all.peak"] == 4096
    assert second["time_ns"] == rig.clock.time_ns()


def test_commands_run_at_every_boundary_after_the_row(rig: Rig) -> None:
    rig.tracker.mark_step()
    rig.tracker.mark_step()
    assert rig.commands_ran_at == [1, 2]
    assert rig.boundaries == 2


def test_without_a_device_the_row_is_there_and_unknown(rig: Rig) -> None:
    rig.device.stats = None
    rig.tracker.mark_step()
    assert rig.rows()[0]["reserved_bytes.all.current"] == UNKNOWN


def test_logged_numbers_come_with_the_step_that_ends_next(rig: Rig) -> None:
    rig.tracker.mark_step()
    rig.tracker.log({"loss": 0.5})
    rig.tracker.mark_step()
    rig.tracker.mark_step()
    first, second, third = rig.rows()
    assert "user.loss" not in first
    assert second["user.loss"] == 0.5
    assert math.isnan(third["user.loss"])
    assert [batch.first_index for batch in rig.outbox.batches("step")] == [0, 1]


def test_whatever_is_asked_for_and_logged_a_server_takes_the_tables() -> None:
    rig = Rig(tuple(f"counter{number}" for number in range(MAX_FIELDS + 10)))
    for number in range(MAX_TABLES + 10):
        rig.tracker.log({f"name{number}": 1.0})
        rig.tracker.mark_step()
        rig.tracker.flush()
    tables = rig.outbox.tables
    assert len(tables) < MAX_TABLES - 8  # samples and a later set of counters have their own
    assert max(len(table.fields) for table in tables.values()) <= MAX_FIELDS


def test_the_hooks_time_is_charged_to_the_agent(rig: Rig) -> None:
    rig.tracker.mark_step()
    assert rig.self_cost.cpu_ns() > 0


def test_the_time_of_some_step_ends_stands_for_that_of_the_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes 5 us here, however many are measured."""
    measured: list[int] = []

    class Meter:
        def end(self) -> int:
            measured.append(rig.tracker.step)
            return 5000

    monkeypatch.setattr(tracker_module, "CpuMeter", Meter)
    for _ in range(10 * METERED_STEPS + 1):
        rig.tracker.mark_step()
    assert len(measured) == 11
    assert rig.self_cost.parts_us()["hooks"] == 5 * (10 * METERED_STEPS + 1)


def test_a_step_inside_a_boundary_is_not_a_step(rig: Rig) -> None:
    """Garbage collection during a command may run a finalizer that steps."""
    rig.tracker._run_commands = lambda step: rig.tracker.mark_step()
    rig.tracker.mark_step()
    assert rig.tracker.step == 1


def test_a_command_that_is_interrupted_leaves_the_tracker_usable(rig: Rig) -> None:
    def interrupt(step: int) -> None:
        raise KeyboardInterrupt

    rig.tracker._run_commands = interrupt
    with pytest.raises(KeyboardInterrupt):
        rig.tracker.mark_step()
    rig.tracker._run_commands = lambda step: None
    rig.tracker.mark_step()
    assert rig.tracker.step == 2


# -------------------------------------------------------------------------- with the real torch


@pytest.mark.torch
def test_every_optimizer_step_is_a_step(rig: Rig) -> None:
    import torch

    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    rig.tracker.install()
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    assert [row["step"] for row in rig.rows()] == list(range(1, 21))


@pytest.mark.torch
@pytest.mark.torch
def test_who_listens_hears_of_an_optimizer_at_once_and_then_every_few_steps(rig: Rig) -> None:
    heard: list[tuple[Any, int]] = []
    rig.tracker.listen_optimizer(lambda optimizer: heard.append((optimizer, rig.tracker.step)))
    rig.tracker.install()
    first = sgd()
    for _ in range(TOLD_STEPS + 1):
        first.step()
    second = sgd()
    second.step()
    assert heard == [(first, 0), (first, TOLD_STEPS), (second, TOLD_STEPS + 1)]


def test_two_optimizers_are_one_step_an_iteration(rig: Rig) -> None:
    rig.tracker.install()
    one, other = sgd(), sgd()
    for _ in range(10):
        one.step()
        other.step()
    assert rig.tracker.step == 10


@pytest.mark.torch
def test_a_step_that_the_scaler_skips_is_none(rig: Rig) -> None:
    import torch

    rig.tracker.install()
    weight = parameter()
    optimizer = sgd(weight)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for factor in (1.0, math.inf, 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert rig.tracker.step == 2


@pytest.mark.torch
def test_the_users_own_step_takes_over_without_counting_twice(rig: Rig) -> None:
    rig.tracker.install()
    optimizer = sgd()
    for _ in range(5):
        optimizer.step()
        rig.tracker.mark_step()
    assert rig.tracker.step == 5


@pytest.mark.torch
def test_the_users_own_step_counts_where_there_is_no_optimizer(rig: Rig) -> None:
    rig.tracker.install()
    for _ in range(5):
        rig.tracker.mark_step()
    assert rig.tracker.step == 5


@pytest.mark.torch
def test_steps_inside_backward_end_at_the_next_batch(rig: Rig) -> None:
    import torch

    rig.tracker.install()
    weights = [parameter() for _ in range(4)]
    step_in_backward(weights)
    backward_with_steps_inside(weights)
    assert rig.tracker.step == 0, "a boundary must not lie inside the backward pass"
    for _ in torch.utils.data.DataLoader(torch.arange(5), batch_size=1):
        backward_with_steps_inside(weights)
    # One before the loop, five in it; the fetch that finds the end closes the last.
    assert rig.tracker.step == 6
    assert rig.notices.texts() == []


@pytest.mark.torch
def test_steps_inside_backward_without_batches_end_when_the_first_comes_round(rig: Rig) -> None:
    rig.tracker.install()
    weights = [parameter() for _ in range(4)]
    step_in_backward(weights)
    for _ in range(5):
        backward_with_steps_inside(weights)
    assert rig.tracker.step == 4, "the fifth has not ended yet, as far as can be known"
    rig.tracker.mark_step()
    assert rig.tracker.step == 5


def fetch(rig: Rig, batches: int) -> None:
    import torch

    for _ in torch.utils.data.DataLoader(torch.arange(batches), batch_size=1):
        pass


@pytest.mark.torch
def test_batches_count_only_after_a_long_time_without_any_step(rig: Rig) -> None:
    rig.tracker.install()
    rig.tracker.poll()
    fetch(rig, 3)
    assert rig.tracker.step == 0
    alike = [rig.tracker.counts_alike]
    rig.clock.advance(BATCH_FALLBACK_S + 1)
    rig.tracker.poll()
    fetch(rig, 3)
    assert rig.tracker.step == 4
    alike.append(rig.tracker.counts_alike)
    assert alike == [True, False]  # on another rank it was another moment
    assert rig.notices.texts() == [
        "no optimizer step seen: batches of the DataLoader count as steps"
    ]


@pytest.mark.torch
def test_an_optimizer_that_steps_after_all_takes_over_from_the_batches(rig: Rig) -> None:
    rig.tracker.install()
    rig.tracker.poll()
    rig.clock.advance(BATCH_FALLBACK_S + 1)
    rig.tracker.poll()
    fetch(rig, 3)
    before = rig.tracker.step
    optimizer = sgd()
    optimizer.step()
    fetch(rig, 3)
    optimizer.step()
    assert rig.tracker.step == before + 2
    assert rig.notices.texts() == []


@pytest.mark.torch
def test_nothing_is_hooked_before_it_is_installed_nor_after_it_is_removed(rig: Rig) -> None:
    """The sampler polls until it has ended."""
    import torch.serialization
    from torch.optim import optimizer

    before = torch.serialization._save
    rig.tracker.poll()
    assert torch.serialization._save is before
    rig.tracker.install()
    assert torch.serialization._save is not before
    rig.tracker.remove()
    rig.tracker.poll()
    assert torch.serialization._save is before
    assert not optimizer._global_optimizer_post_hooks


@pytest.mark.torch
def test_removed_it_counts_no_more(rig: Rig) -> None:
    rig.tracker.install()
    optimizer = sgd()
    optimizer.step()
    rig.tracker.remove()
    optimizer.step()
    assert rig.tracker.step == 1


# ------------------------------------------------------------------------ phases and data


@pytest.mark.torch
def test_a_row_says_how_long_the_step_waited_for_data(rig: Rig) -> None:
    import torch

    class Slow(torch.utils.data.Dataset[Any]):  # type: ignore[misc]  # torch is untyped here
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            rig.clock.advance(0.25)
            return torch.ones(2)

    rig.tracker.install()
    optimizer = sgd()
    for _ in torch.utils.data.DataLoader(Slow(), batch_size=1):
        rig.clock.advance(0.1)
        optimizer.step()
    rows = rig.rows()
    assert [row["step.data_wait_us"] for row in rows] == [250_000] * 3
    assert [row["step.duration_us"] for row in rows[1:]] == [350_000] * 2


def test_a_row_has_the_phase_that_the_step_ended_in(rig: Rig) -> None:
    rig.tracker.mark_step()
    stretch = rig.phases.begin("warm-up", "user")
    rig.tracker.mark_step()
    rig.phases.end(stretch)
    rig.tracker.mark_step()
    assert [row["phase"] for row in rig.rows()] == [0, stretch.code, 0]


# -------------------------------------------------------------------- steps of a framework
