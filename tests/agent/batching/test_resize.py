"""The commands on a real loop: what they say before, what they do, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fake_torch import nested_stats
from tests.support.resize_rig import ResizableJob as Job
from tests.support.resize_rig import ResizeRig
from tests.support.step_rig import sgd
from vramscope.batching.declared_batch_size import forget_declared

pytestmark = pytest.mark.torch


@pytest.fixture
def rig() -> Iterator[ResizeRig]:
    forget_declared()
    rig = ResizeRig()
    rig.device.stats = {**nested_stats(), "num_ooms": 0}
    yield rig
    rig.close()
    forget_declared()


def test_a_dry_run_says_what_would_be_and_changes_nothing(rig: ResizeRig) -> None:
    job = Job(rig)
    rig.at(2, batch_size=4, dry_run=True)
    assert job.epoch() == [8] * 6
    (receipt,) = rig.receipts
    assert (receipt.state, receipt.dry_run) == ("done", True)
    assert receipt.before["batch_size"] == 8
    assert receipt.after == {"batch_size": 4, "accumulation": 2, "global_batch": 8}
    assert receipt.result["switch_in_batches"] == 0
    for part in (
        "Batch size 8 to 4, accumulation 1 to 2, the global batch stays 8.",
        "It takes effect with the next batch.",
        "Every sample is seen. An epoch keeps its 6 steps.",
    ):
        assert part in receipt.message


def test_the_receipt_comes_after_the_first_step_with_its_sizes(rig: ResizeRig) -> None:
    job = Job(rig)
    rig.at(2, batch_size=4)
    assert job.epoch() == [8, 8, *[4] * 8]
    assert sorted(job.seen) == list(range(48))
    (receipt,) = rig.receipts
    assert (receipt.state, receipt.step) == ("done", 3)
    assert receipt.after["accumulation"] == job.sizes.accumulation == 2


def test_what_is_so_already_is_done_at_once(rig: ResizeRig) -> None:
    rig.at(2, batch_size=8)
    Job(rig).epoch()
    (receipt,) = rig.receipts
    assert (receipt.state, receipt.step) == ("done", 2)


def test_one_change_at_a_time_and_none_with_graphs_of_the_job(rig: ResizeRig) -> None:
    job = Job(rig, samples=96, workers=1)
    rig.at(2, batch_size=4)
    rig.at(3, batch_size=2)
    job.epoch()
    refused, done = rig.receipts
    assert (refused.state, done.state) == ("refused", "done")
    assert "another change of sizes is being made" in refused.message.lower()
    rig.tracker.has_graphs = lambda: True
    rig.at(rig.tracker.step + 1, batch_size=8)
    job.epoch()
    assert "CUDA graphs" in rig.receipts[-1].message
    assert rig.receipts[-1].state == "refused"


def test_an_unknown_loader_and_two_loaders_are_refused_with_what_to_do(rig: ResizeRig) -> None:
    import torch

    optimizer = sgd()
    (weight,) = optimizer.param_groups[0]["params"]
    rig.at(1, batch_size=4)
    weight.sum().backward()
    optimizer.step()
    data: Any = torch.arange(8)
    loaders: list[Any] = [torch.utils.data.DataLoader(data, batch_size=4) for _ in range(2)]
    rig.at(2, batch_size=2)
    for first, second in zip(*loaders, strict=True):
        (weight.sum() * (first.sum() + second.sum())).backward()
        optimizer.step()
    unknown, several = rig.receipts
    assert "no dataloader is known" in unknown.message.lower()
    assert "each step reads from 2 loaders" in several.message.lower()
    for receipt in (unknown, several):
        assert receipt.state == "refused"
        assert "vramscope.batch_size(" in receipt.message


def test_an_agent_that_goes_leaves_sizes_that_fit_together(rig: ResizeRig) -> None:
    job = Job(rig, samples=96, workers=1)
    rig.at(2, batch_size=4)
    run = rig.tracker._run_commands

    def leave_at_two(step: int) -> None:
        run(step)
        if step == 2:
            rig.close()

    rig.tracker._run_commands = leave_at_two
    assert job.epoch() == [8] * 12
    assert job.sizes.accumulation == 1


def test_a_change_right_after_one_was_made_begins_with_its_sizes(rig: ResizeRig) -> None:
    job = Job(rig, samples=96)
    rig.at(5, batch_size=4)  # made at step 6, as a window of two begins there
    rig.at(6, batch_size=2)
    sizes = job.epoch()
    first, second = rig.receipts
    assert first.after["batch_size"] == second.before["batch_size"] == 4
    assert sizes[6] == 4
    assert sizes[-1] == 2
    assert sorted(job.seen) == list(range(96))
    assert {row["step.batch_samples"] for row in rig.rows()} == {8}
