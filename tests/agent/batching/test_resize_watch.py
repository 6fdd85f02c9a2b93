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
from vramscope.batching.first_step import Heard
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


class Together:
    """Other ranks, as a test lets them answer."""

    def __init__(self) -> None:
        self.heard = Heard()
        self.against: str | None = None
        self.places: list[str] = []
        self.left: list[bool] = []

    def meet(self, place: str, *, ran_out: bool) -> Heard:
        self.places.append(place)
        return self.heard

    def leave(self, *, ran_out: bool) -> None:
        self.left.append(ran_out)

    def reason_against(self, refusal: str, shown: dict[str, Any]) -> str | None:
        return refusal or self.against


def made(together: Together | None = None) -> tuple[Any, ResizeWatch]:
    """A change that is made, from 8 to 16 samples, and what it asks."""
    plan = SimpleNamespace(check=lambda sizes: None, shown=dict, effect=lambda: "Next batch.")
    asked: Any = SimpleNamespace(error=None, out=0, peak=3 << 30, news=[], begun=[])
    asked.ooms = lambda: asked.out
    asked.peak_bytes = lambda: asked.peak
    asked.first_step_begins = asked.news.append
    asked.first_step_ends = asked.news.clear
    asked.before_next_fetch = lambda call: setattr(asked, "at_fetch", call)
    asked.plan = lambda: plan
    asked.begin = lambda plan, sizes: asked.begun.append(sizes)
    ranks = 1 if together is None else 2
    sampler = object()
    switch: Any = SimpleNamespace(is_made=True, wanted=Sizes(16, 1, ranks), index_sampler=sampler)
    asked.iterator = SimpleNamespace(_index_sampler=sampler, _num_yielded=5)
    now = Sizes(8, 1, ranks)
    before = {**now.told(), "peak_bytes": 2 << 30}
    words = ["Batch size 8 to 16.", "Now."]
    others: Any = together
    return asked, ResizeWatch(asked, switch, now, before, words, others, 3)


def test_of_several_ranks_all_go_back_where_one_ran_out() -> None:
    together = Together()
    asked, watch = made(together)
    together.heard = Heard((1,))  # not this one
    receipt = watch.poll(4)
    assert receipt is not None
    assert (receipt.state, receipt.result) == ("failed", {"ran_out": True})
    assert "first step with it on rank 1. It was rolled back on all ranks." in receipt.message
    assert (receipt.after["batch_size"], asked.begun) == (8, [Sizes(8, 1, 2)])


def test_they_go_back_before_the_next_batch_where_no_step_ends() -> None:
    together = Together()
    asked, watch = made(together)
    asked.at_fetch(SimpleNamespace(_index_sampler=object()))  # of an evaluation
    asked.at_fetch(asked.iterator)
    assert watch.poll_on_agent_thread() is None
    together.heard = Heard((0, 1))
    asked.at_fetch(asked.iterator)
    assert together.places == ["batch 5 of its epoch"] * 2
    receipt = watch.poll_on_agent_thread()
    assert receipt is not None
    assert "on ranks 0, 1. It was rolled back on all ranks." in receipt.message


@pytest.mark.parametrize("by", ["place", "plan"])
def test_of_several_ranks_none_goes_back_alone(by: str) -> None:
    together = Together()
    asked, watch = made(together)
    asked.out = 1
    together.heard = Heard((0,), "rank 1 was elsewhere" if by == "place" else "")
    together.against = "rank 1: no loader" if by == "plan" else None
    receipt = watch.poll(4)
    assert receipt is not None
    assert (receipt.state, receipt.result) == ("failed", {"ran_out": True})
    assert {"place": "rank 1 was elsewhere", "plan": "rank 1: no loader"}[by] in receipt.message
    assert "Set it back with another command" in receipt.message
    assert (receipt.after["batch_size"], asked.begun) == (16, [])


def test_a_rank_that_is_not_watched_any_more_lets_the_others_know() -> None:
    together = Together()
    asked, watch = made(together)
    asked.out = 1
    receipt = watch.cancel("the job has ended")
    assert "Memory ran out in the first step" in receipt.message
    assert "not rolled back: the job has ended" in receipt.message
    assert together.left == [True]
    asked.at_fetch(asked.iterator)
    assert (together.places, asked.begun) == ([], [])


def test_a_report_of_memory_that_runs_out_knows_that_the_sizes_are_new() -> None:
    asked, watch = made()
    (news,) = asked.news
    assert (news.since_step, news.before["batch_size"], news.after["batch_size"]) == (3, 8, 16)
    watch.poll(4)
    assert asked.news == []


def test_the_receipt_has_the_peaks_of_a_step_before_and_after() -> None:
    _, watch = made()
    receipt = watch.poll(4)
    assert receipt is not None
    assert receipt.state == "done"
    assert (receipt.before["peak_bytes"], receipt.after["peak_bytes"]) == (2 << 30, 3 << 30)
    assert receipt.message.endswith("The peak of a step was 2 GiB, and 3 GiB in the first.")
