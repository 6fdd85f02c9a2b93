"""What autocast's copies held is measured when its region ends, and PyTorch is left as it was."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vramscope.steps.autocast_cache import AMP_MODULE, EVERY_STEPS, MAX_REGIONS, NAME, AutocastCache
from vramscope_protocol.columns import UNKNOWN

MIB = 1 << 20


class Job:
    """A job whose regions free what the test says."""

    def __init__(self, cache: Callable[..., AutocastCache]) -> None:
        self.allocated = 500 * MIB
        self.is_training = True
        self.asked = 0
        self.torch = types.ModuleType("torch")
        self.torch.__dict__["clear_autocast_cache"] = self._clear
        self._to_free = 0
        self.cache = cache(self._stats, lambda: self.is_training, lambda cost: None)

    def region(self, freed: int) -> None:
        """One that ends; what it made was allocated before."""
        self.allocated += freed
        self._to_free = freed
        self.torch.clear_autocast_cache()

    def _clear(self) -> None:
        self.allocated -= self._to_free

    def _stats(self) -> Any:
        self.asked += 1
        return {"allocated_bytes": {"all": {"current": self.allocated}}}


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    made = Job(AutocastCache)
    monkeypatch.setitem(sys.modules, "torch", made.torch)
    monkeypatch.setitem(sys.modules, AMP_MODULE, types.ModuleType(AMP_MODULE))
    made.cache.install()
    yield made
    made.cache.remove()


def test_the_most_of_a_step_is_told_once(job: Job) -> None:
    assert job.cache.names == (NAME,)
    job.region(8 * MIB)
    job.region(24 * MIB)
    assert job.cache.take() == (24 * MIB,)
    to_the_next_look(job)
    assert job.cache.take() == (0,)


def to_the_next_look(job: Job) -> None:
    for _ in range(EVERY_STEPS - 1):
        job.region(64 * MIB)
        assert job.cache.take() == (UNKNOWN,)


def test_in_the_steps_between_nobody_looks(job: Job) -> None:
    job.cache.take()
    to_the_next_look(job)
    assert job.asked == 0


def test_of_many_regions_the_first_are_looked_at(job: Job) -> None:
    for _ in range(100):
        job.region(MIB)
    assert job.asked == 2 * MAX_REGIONS
    assert job.cache.take() == (MIB,)
    to_the_next_look(job)
    job.region(3 * MIB)
    assert job.cache.take() == (3 * MIB,)


def test_other_threads_and_what_allocates_meanwhile_are_left_out(job: Job) -> None:
    job.is_training = False
    job.region(8 * MIB)
    job.is_training = True
    job.region(-4 * MIB)
    assert job.cache.take() == (0,)


def test_it_leaves_the_function_as_it_was(job: Job) -> None:
    job.cache.remove()
    assert job.torch.clear_autocast_cache == job._clear
    job.region(8 * MIB)
    assert (job.cache.take(), job.asked) == ((UNKNOWN,), 0)


def test_a_forked_child_only_passes_on(job: Job) -> None:
    job.cache.forget_after_fork()
    job.region(8 * MIB)
    assert job.asked == 0


@pytest.mark.torch
def test_pytorchs_regions_end_there() -> None:
    import torch

    at: list[int] = []

    def stats() -> Any:
        at.append(len(at))
        return {"allocated_bytes": {"all": {"current": 1000 - 100 * len(at)}}}

    cache = AutocastCache(stats, lambda: True, lambda cost: None)
    cache.install()
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.autocast("cpu"):
            assert at == []
        assert cache.take() == (100,)
    finally:
        cache.remove()
    assert isinstance(torch.clear_autocast_cache, types.BuiltinFunctionType)
