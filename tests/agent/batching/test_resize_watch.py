"""The first step with new sizes decides whether they stay; its receipt says so."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_torch import nested_stats
from tests.support.resize_rig import ResizableJob as Job
from tests.support.resize_rig import ResizeRig
from vramscope.batching.declared_batch_size import forget_declared
from vramscope.batching.resize_watch import ResizeWatch
from vramscope.batching.sizes import Sizes

pytestmark = pytest.mark.torch


@pytest.fixture
def rig() -> Iterator[ResizeRig]:
    forget_declared()
    rig = ResizeRig()
    rig.device.stats = {**nested_stats(), "num_ooms": 0}
    yield rig
    rig.close()
    forget_declared()


def test_sizes_that_run_out_of_memory_are_set_back(rig: ResizeRig) -> None:
    job = Job(rig, samples=96)
    job.too_large = 8
    rig.at(2, batch_size=16, change_global_batch=True, accumulation=1)
    # The one batch that did not fit is lost to the loop's own care.
    assert job.epoch() == [8, 8, 16, *[8] * 8]
    (receipt,) = rig.receipts
    assert (receipt.state, receipt.result) == ("failed", {"ran_out": True})
    assert "Memory ran out in the first step with it. It was rolled back." in receipt.message
    assert receipt.after["batch_size"] == 8
    assert job.sizes.value == 8


def test_without_the_agents_thread_the_next_step_sets_them_back(rig: ResizeRig) -> None:
    job = Job(rig, samples=96)
    rig.at(2, batch_size=16, change_global_batch=True, accumulation=1)
    run, stats = rig.tracker._run_commands, rig.device.stats or {}

    def ran_out_before_three(step: int) -> None:
        if step == 3:
            rig.device.stats = {**stats, "num_ooms": 1}
        run(step)

    rig.tracker._run_commands = ran_out_before_three
    assert job.epoch() == [8, 8, 16, *[8] * 8]
    (receipt,) = rig.receipts
    assert (receipt.state, receipt.result) == ("failed", {"ran_out": True})


def test_a_command_that_ends_early_leaves_the_change_to_be_made(rig: ResizeRig) -> None:
    job = Job(rig, samples=96, workers=1)
    rig.at(2, batch_size=4)
    rig.at(3, batch_size=2)
    run = rig.tracker._run_commands

    def close_at_three(step: int) -> None:
        run(step)
        if step == 3:
            rig.queue.close("the server has gone")

    rig.tracker._run_commands = close_at_three
    sizes = job.epoch()
    assert sizes[-1] == 4
    assert sorted(job.seen) == list(range(96))
    assert job.sizes.accumulation == 2
    assert "It is still made at its batch." in rig.receipts[-1].message


def made(ranks: int) -> tuple[Any, ResizeWatch]:
    """A change that is made, from 8 to 16 samples, and what it asks."""
    asked: Any = SimpleNamespace(error=None, out=0, peak=3 << 30)
    asked.ooms = lambda: asked.out
    asked.peak_bytes = lambda: asked.peak
    switch: Any = SimpleNamespace(is_made=True, wanted=Sizes(16, 1, ranks))
    now = Sizes(8, 1, ranks)
    before = {**now.told(), "peak_bytes": 2 << 30}
    return asked, ResizeWatch(asked, switch, now, before, ["Batch size 8 to 16.", "Now."])


def test_of_several_ranks_none_goes_back_alone() -> None:
    asked, watch = made(ranks=2)
    asked.out = 1
    receipt = watch.poll(4)
    assert receipt is not None
    assert (receipt.state, receipt.result) == ("failed", {"ran_out": True})
    assert "It stays, for the other ranks have it too" in receipt.message
    assert receipt.after["batch_size"] == 16


def test_the_receipt_has_the_peaks_of_a_step_before_and_after() -> None:
    _, watch = made(ranks=1)
    receipt = watch.poll(4)
    assert receipt is not None
    assert receipt.state == "done"
    assert (receipt.before["peak_bytes"], receipt.after["peak_bytes"]) == (2 << 30, 3 << 30)
    assert receipt.message.endswith("The peak of a step was 2 GiB, and 3 GiB in the first.")
