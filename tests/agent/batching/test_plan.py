"""What a plan says of batches and samples, on loops whose numbers are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.resize_rig import ResizeRig
from tests.support.step_rig import sgd
from vramscope.batching.declared_batch_size import forget_declared
from vramscope.batching.plan import Plan
from vramscope.batching.sizes import Sizes
from vramscope_protocol.errors import VramscopeError

pytestmark = pytest.mark.torch


@pytest.fixture
def rig() -> Iterator[ResizeRig]:
    forget_declared()
    rig = ResizeRig()
    yield rig
    rig.close()


def plan_after(rig: ResizeRig, steps: int, wanted: Sizes, **options: Any) -> Plan:
    """The checked plan of a loop over 50 samples that has made so many steps."""
    import torch

    data: Any = torch.arange(50)
    loader: Any = torch.utils.data.DataLoader(data, batch_size=8, **options)
    optimizer = sgd()
    (weight,) = optimizer.param_groups[0]["params"]
    for number, batch in enumerate(loader, 1):
        (weight.sum() * batch.sum()).backward()
        optimizer.step()
        if number == steps:
            plan = Plan(rig.tracker.loaders)
            plan.check(wanted)
            return plan
    raise AssertionError("the loop is over")


def test_the_batches_of_this_epoch_and_of_later_ones(rig: ResizeRig) -> None:
    plan = plan_after(rig, 2, Sizes(4, 1, 1))
    assert plan.now == Sizes(8, 1, 1)
    assert plan.change is not None
    batches = plan.change.batches
    assert (batches.before, batches.running, batches.later) == (2, 2 + 9, 13)
    assert plan.effect() == "It takes effect with the next batch."
    assert "An epoch has 13 steps instead of 7" in plan.epoch(Sizes(4, 1, 1))


def test_with_workers_it_is_after_those_that_are_drawn(rig: ResizeRig) -> None:
    plan = plan_after(rig, 2, Sizes(4, 1, 1), num_workers=2, drop_last=True)
    assert plan.change is not None
    assert plan.change.batches.before == 6
    # Drawn to its end: what is left over fills a batch of the new size no more.
    assert (plan.is_at_end, plan.change.batches.running) == (True, 6)
    assert plan.effect() == "It takes effect with the next epoch."
    assert plan.epoch(Sizes(4, 1, 1)).startswith("drop_last leaves out 2 samples")


def test_a_batch_larger_than_an_epoch_is_refused(rig: ResizeRig) -> None:
    with pytest.raises(VramscopeError, match="has no batch of 64"):
        plan_after(rig, 2, Sizes(64, 1, 1), drop_last=True)


def test_what_ranks_have_to_agree_on(rig: ResizeRig) -> None:
    shown = plan_after(rig, 2, Sizes(4, 1, 1)).shown()
    assert shown["sizes"] == {"batch_size": 8, "accumulation": 1, "global_batch": 8}
    assert (shown["the batch of the change"], shown["batches drawn"]) == (2, 2)
    assert shown["batches of the epoch"] == [11, 13]
