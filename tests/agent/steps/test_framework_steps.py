"""Steps that a framework tells count only where nobody else sees them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.step_rig import Rig, backward_with_steps_inside, parameter, sgd, step_in_backward


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.tracker.remove()


@pytest.mark.torch
def test_where_the_optimizer_counts_a_framework_does_not(rig: Rig) -> None:
    rig.tracker.install()
    optimizer = sgd()
    for _ in range(5):
        optimizer.step()
        rig.tracker.mark_framework_step()
    # A scaler skips the optimizer's step, the framework's goes on.
    rig.tracker.mark_framework_step()
    assert rig.tracker.step == 5


def test_a_framework_counts_where_no_optimizer_is_seen(rig: Rig) -> None:
    for _ in range(4):
        rig.tracker.mark_framework_step()
    assert rig.tracker.step == 4
    assert rig.commands_ran_at == [1, 2, 3, 4]


@pytest.mark.torch
def test_an_optimizer_that_steps_after_all_takes_over_from_a_framework(rig: Rig) -> None:
    rig.tracker.install()
    rig.tracker.mark_framework_step()
    optimizer = sgd()
    for _ in range(3):
        optimizer.step()
        rig.tracker.mark_framework_step()
    assert rig.tracker.step == 4


@pytest.mark.torch
def test_a_framework_counts_where_optimizers_step_part_by_part(rig: Rig) -> None:
    """As sharded optimizers do, with one call for each part of the parameters."""
    rig.tracker.install()
    optimizer = sgd()
    for _ in range(10):
        for _ in range(4):
            optimizer.step()
        rig.tracker.mark_framework_step()
    # Three of four until that is certain; then one for each of the framework's.
    assert rig.tracker.step == 3 * 4 + 7
    assert rig.notices.texts() == [
        "the optimizer steps several times a step: the framework's steps count"
    ]


@pytest.mark.torch
def test_a_framework_ends_the_step_of_optimizers_inside_backward(rig: Rig) -> None:
    rig.tracker.install()
    weights = [parameter() for _ in range(4)]
    step_in_backward(weights)
    for _ in range(5):
        backward_with_steps_inside(weights)
        rig.tracker.mark_framework_step()
    assert rig.tracker.step == 5


def test_where_the_user_counts_nobody_else_does(rig: Rig) -> None:
    rig.tracker.mark_step()
    rig.tracker.mark_framework_step()
    assert rig.tracker.step == 1
