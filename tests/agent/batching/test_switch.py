"""A loop that leaves an epoch early takes the change along into the next one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.resize_rig import ResizeRig
from tests.support.step_rig import sgd
from vramscope.batching.declared_batch_size import BatchSize, declare, forget_declared

pytestmark = pytest.mark.torch


@pytest.fixture
def rig() -> Iterator[ResizeRig]:
    forget_declared()
    rig = ResizeRig()
    yield rig
    rig.close()
    forget_declared()


@pytest.mark.parametrize("drop_last", [False, True])
def test_an_epoch_that_is_left_before_the_batch_came(rig: ResizeRig, drop_last: bool) -> None:
    import torch

    data: Any = torch.arange(96)
    loader: Any = torch.utils.data.DataLoader(
        data, batch_size=8, num_workers=1, drop_last=drop_last
    )
    sizes = BatchSize(loader, 1)
    declare(sizes)
    optimizer = sgd()
    (weight,) = optimizer.param_groups[0]["params"]
    rig.at(2, batch_size=4)
    epochs: list[list[int]] = []
    for limit in (3, 100):
        epochs.append([])
        for number, batch in enumerate(loader, 1):
            epochs[-1].append(len(batch))
            (weight.sum() * batch.sum()).backward()
            if number % sizes.accumulation == 0:
                optimizer.step()
            if number == limit:
                break
    assert epochs[0] == [8] * 3
    assert epochs[1][-1] == 4
    assert sum(epochs[1]) == 96
    assert rig.receipts[-1].state == "done"
    # Each step was of eight samples, before and after.
    assert {row["step.batch_samples"] for row in rig.rows()} == {8}
